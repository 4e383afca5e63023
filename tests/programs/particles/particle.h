#ifndef PARTICLE_H
#define PARTICLE_H
#include "vec3.h"

// A ball in a box of a given size; it bounces off the walls.
class Particle {
 public:
  Particle() = default;
  HD Particle(const Vec3& position, const Vec3& velocity) : position_(position), velocity_(velocity), travelled_(0) {}
  HD void advance(int box) {
    position_ += velocity_;
    for (int i = 0; i < 3; ++i)
      if (position_[i] < 0 || position_[i] >= box) {
        velocity_[i] = -velocity_[i];
        position_[i] += 2 * velocity_[i];
      }
    travelled_ += velocity_.dot(velocity_);
  }
  HD const Vec3& position() const { return position_; }
  HD long travelled() const { return travelled_; }

 private:
  Vec3 position_, velocity_;
  long travelled_;
};

// In host.cpp, which knows nothing of CUDA.
void advanceOnHost(Particle* particles, int count, int steps, int box);

#endif
