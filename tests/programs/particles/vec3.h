// A vector of three numbers for host and device; plain C++ where there is no CUDA compiler.
#ifndef VEC3_H
#define VEC3_H

#ifdef __CUDACC__
#define HD __host__ __device__
#else
#define HD
#endif

class Vec3 {
 public:
  int x, y, z;
  Vec3() = default;  // shared memory takes no constructor that does something
  HD Vec3(int x, int y, int z) : x(x), y(y), z(z) {}
  HD Vec3& operator+=(const Vec3& o) {
    x += o.x;
    y += o.y;
    z += o.z;
    return *this;
  }
  HD friend Vec3 operator+(Vec3 a, const Vec3& b) { return a += b; }
  HD Vec3 operator-() const { return Vec3(-x, -y, -z); }
  HD Vec3 operator*(int s) const { return Vec3(x * s, y * s, z * s); }
  HD bool operator==(const Vec3& o) const { return x == o.x && y == o.y && z == o.z; }
  HD int& operator[](int i) { return i == 0 ? x : i == 1 ? y : z; }
  HD int dot(const Vec3& o) const { return x * o.x + y * o.y + z * o.z; }
};

#endif
