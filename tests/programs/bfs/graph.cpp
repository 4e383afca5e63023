#include "graph.h"

/* Vertex v is joined to v + 1 and to some others; the last ones are islands. */
Graph makeGraph(int vertices, unsigned seed)
{
    Graph g = {vertices, 0, (int *)malloc((vertices + 1) * sizeof(int)), (int *)malloc(5 * vertices * sizeof(int))};
    for (int v = 0; v < vertices; v++) {
        g.first[v] = g.edges;
        if (v >= vertices - 5) continue;
        if (v % 3) g.neighbour[g.edges++] = (v + 1) % (vertices - 5);
        for (int k = 0; k < v % 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            g.neighbour[g.edges++] = (int)((seed >> 8) % (unsigned)(vertices - 5));
        }
    }
    g.first[vertices] = g.edges;
    return g;
}

void freeGraph(Graph *g)
{
    free(g->first);
    free(g->neighbour);
}

void levelsOnHost(const Graph *g, int source, int *level)
{
    int *queue = (int *)malloc(g->vertices * sizeof(int)), head = 0, tail = 0;
    for (int v = 0; v < g->vertices; v++) level[v] = -1;
    level[source] = 0;
    queue[tail++] = source;
    while (head < tail) {
        int v = queue[head++];
        for (int e = g->first[v]; e < g->first[v + 1]; e++) {
            int w = g->neighbour[e];
            if (level[w] < 0) {
                level[w] = level[v] + 1;
                queue[tail++] = w;
            }
        }
    }
    free(queue);
}
