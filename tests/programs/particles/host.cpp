#include "particle.h"

void advanceOnHost(Particle* particles, int count, int steps, int box) {
  for (int i = 0; i < count; ++i)
    for (int s = 0; s < steps; ++s) particles[i].advance(box);
}
