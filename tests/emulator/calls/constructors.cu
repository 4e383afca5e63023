// Calls between the host and the device; in each title what nvcc 13 says of it (cases.py).

// ---- a constructor of the host: nvcc refuses
struct Made {
  int v;
  Made() : v(3) {}
};
__global__ void made_k(int* p) {
  Made m;
  p[0] = m.v;
}

// ---- a constructor of the host with an argument: nvcc refuses
struct MadeOf {
  int v;
  explicit MadeOf(int x) : v(x) {}
};
__global__ void made_of_k(int* p) {
  MadeOf m(p[0]);
  p[0] = m.v;
}

// ---- a constructor of the device: nvcc accepts
struct MadeThere {
  int v;
  __device__ MadeThere() : v(3) {}
};
__global__ void made_there_k(int* p) {
  MadeThere m;
  p[0] = m.v;
}

// ---- a constructor of the device, from the host: nvcc refuses
struct MadeHere {
  int v;
  __device__ MadeHere() : v(3) {}
};
int made_here() {
  MadeHere m;
  return m.v;
}

// ---- an implicit conversion by a constructor of the host: nvcc refuses
struct Converted {
  int v;
  Converted(int x) : v(x) {}
};
__device__ int converted_f(const Converted& c) { return c.v; }
__global__ void converted_k(int* p) { p[0] = converted_f(p[0]); }

// ---- a defaulted constructor: nvcc accepts
struct Defaulted {
  int v = 3;
  Defaulted() = default;
};
__global__ void defaulted_k(int* p) {
  Defaulted d;
  p[0] = d.v;
}

// ---- a constructor that is there by itself: nvcc accepts
struct Implicit {
  int v = 3;
};
__global__ void implicit_k(int* p) {
  Implicit d;
  p[0] = d.v;
}

// ---- a constructor that is there by itself, of a member that the host makes: nvcc refuses, the emulated GPU accepts
struct InnerPart {
  int v;
  InnerPart() : v(3) {}
};
struct OuterPart {
  InnerPart part;
};
__global__ void inner_k(int* p) {
  OuterPart o;
  p[0] = o.part.v;
}

// ---- a base that the host makes: nvcc refuses
struct BaseOfHost {
  int v;
  BaseOfHost() : v(3) {}
};
struct DerivedThere : BaseOfHost {
  __device__ DerivedThere() { v += 1; }
};
__global__ void derived_k(int* p) {
  DerivedThere d;
  p[0] = d.v;
}

// ---- a copy constructor of the host: nvcc refuses
struct Copied {
  int v;
  __device__ Copied() : v(3) {}
  Copied(const Copied& o) : v(o.v) {}
};
__global__ void copied_k(int* p) {
  Copied a;
  Copied b = a;
  p[0] = b.v;
}

// ---- a kernel's parameter whose class the host copies: nvcc accepts
struct Passed {
  int v;
  Passed(int x) : v(x) {}
  Passed(const Passed& o) : v(o.v) {}
};
__global__ void passed_k(Passed s, int* p) { p[0] = s.v; }
void passed_start() { passed_k<<<1, 1>>>(Passed(1), nullptr); }

// ---- a kernel's parameter whose class the host destroys: nvcc accepts
struct PassedAway {
  int v;
  PassedAway(int x) : v(x) {}
  ~PassedAway() { v = 0; }
};
__global__ void passed_away_k(PassedAway s, int* p) { p[0] = s.v; }
void passed_away_start() { passed_away_k<<<1, 1>>>(PassedAway(1), nullptr); }

// ---- a parameter of a kernel's template whose class the host copies: nvcc accepts
struct PassedOn {
  int v;
  PassedOn(int x) : v(x) {}
  PassedOn(const PassedOn& o) : v(o.v) {}
};
template <typename T>
__global__ void passed_on_k(T s, int* p) {
  p[0] = s.v;
}
void passed_on_start() { passed_on_k<<<1, 1>>>(PassedOn(1), nullptr); }

// ---- a destructor of the host: nvcc refuses
struct Ended {
  int v;
  __device__ Ended() : v(1) {}
  ~Ended() { v = 0; }
};
__global__ void ended_k(int* p) {
  Ended e;
  p[0] = e.v;
}

// ---- a constexpr constructor: nvcc refuses without --expt-relaxed-constexpr
struct LiteralMade {
  int v;
  constexpr LiteralMade(int x) : v(x) {}
};
__global__ void literal_made_k(int* p) {
  LiteralMade l(p[0]);
  p[0] = l.v;
}

// ---- a default argument that the host computes: nvcc refuses
int default_f() { return 3; }
__device__ int default_d(int x = default_f()) { return x; }
__global__ void default_k(int* p) { p[0] = default_d(); }

// ---- a default of a member that the host computes: nvcc refuses, the emulated GPU accepts
int initial_f() { return 3; }
struct Initial {
  int v = initial_f();
};
__global__ void initial_k(int* p) {
  Initial i;
  p[0] = i.v;
}

// ---- a constructor that a class inherits: nvcc refuses, the emulated GPU accepts
struct Inherited {
  int v;
  Inherited(int x) : v(x) {}
};
struct Heir : Inherited {
  using Inherited::Inherited;
};
__global__ void heir_k(int* p) {
  Heir h(p[0]);
  p[0] = h.v;
}

// ---- a constructor for the device that is defined outside of its class: nvcc accepts
struct Outer {
  int v;
  __device__ explicit Outer(int x);
};
Outer::Outer(int x) : v(x) {}
__global__ void outer_k(int* p) {
  Outer o(p[0]);
  p[0] = o.v;
}

// ---- a destructor for the device, from the host: nvcc refuses
struct Gone {
  int v;
  __device__ ~Gone() { v = 0; }
};
void gone_host() {
  Gone g;
  g.v = 1;
}
