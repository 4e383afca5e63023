#ifndef GRAPH_H
#define GRAPH_H

#include <stdlib.h>

/* A graph as lists of neighbours, one after another. */
typedef struct {
    int vertices;
    int edges;
    int *first;     /* vertices + 1 */
    int *neighbour; /* edges */
} Graph;

#ifdef __cplusplus
extern "C" {
#endif
Graph makeGraph(int vertices, unsigned seed);
void freeGraph(Graph *g);
void levelsOnHost(const Graph *g, int source, int *level);
#ifdef __cplusplus
}
#endif

#endif
