// Calls between the host and the device; in each title what nvcc 13 says of it (cases.py).

// ---- a member function of the host: nvcc refuses
struct Member {
  int v;
  int member_get() const { return v; }
};
__global__ void member_k(int* p) {
  Member m = {p[0]};
  p[0] = m.member_get();
}

// ---- a member function of the device: nvcc accepts
struct DeviceMember {
  int v;
  __device__ int member_of_device() const { return v; }
};
__global__ void device_member_k(int* p) {
  DeviceMember m = {p[0]};
  p[0] = m.member_of_device();
}

// ---- a member function of the device, from the host: nvcc refuses
struct HostMember {
  int v;
  __device__ int member_for_host() const { return v; }
};
int host_member() {
  HostMember m = {1};
  return m.member_for_host();
}

// ---- a member function that is declared for the device, and defined without the word: nvcc
// accepts
struct Outside {
  int v;
  __device__ int outside_get() const;
};
int Outside::outside_get() const { return v; }
__global__ void outside_k(int* p) {
  Outside m = {p[0]};
  p[0] = m.outside_get();
}

// ---- a static member function of the host: nvcc refuses
struct Static {
  static int static_get() { return 1; }
};
__global__ void static_member_k(int* p) { p[0] = Static::static_get(); }

// ---- a member function of a class template: nvcc refuses
template <typename T>
struct Box {
  T v;
  T box_get() const { return v; }
};
__global__ void box_k(int* p) {
  Box<int> b = {p[0]};
  p[0] = b.box_get();
}

// ---- an operator of the host: nvcc refuses
struct Added {
  int v;
};
Added operator+(Added a, Added b) { return {a.v + b.v}; }
__global__ void added_k(int* p) {
  Added a = {1}, b = {2};
  p[0] = (a + b).v;
}

// ---- an operator of the device: nvcc accepts
struct Times {
  int v;
};
__device__ Times operator*(Times a, Times b) { return {a.v * b.v}; }
__global__ void times_k(int* p) {
  Times a = {1}, b = {2};
  p[0] = (a * b).v;
}

// ---- operator() of the host, of a function object: nvcc refuses
struct Called {
  int operator()(int x) const { return x; }
};
__global__ void called_k(int* p) {
  Called f;
  p[0] = f(p[0]);
}

// ---- operator() of the host, handed to a kernel's template: nvcc refuses
struct Handed {
  int operator()(int x) const { return x; }
};
template <typename F>
__global__ void handed_k(F f, int* p) {
  p[0] = f(p[0]);
}
void handed_start() { handed_k<<<1, 1>>>(Handed(), nullptr); }

// ---- operator() of the device, handed to a kernel's template: nvcc accepts
struct HandedThere {
  __device__ int operator()(int x) const { return x; }
};
template <typename F>
__global__ void handed_there_k(F f, int* p) {
  p[0] = f(p[0]);
}
void handed_there_start() { handed_there_k<<<1, 1>>>(HandedThere(), nullptr); }

// ---- a conversion of the host: nvcc refuses
struct Number {
  int v;
  operator int() const { return v; }
};
__global__ void number_k(int* p) {
  Number n = {3};
  p[0] = n;
}

// ---- operator[] of the host: nvcc refuses
struct Row {
  int v[4];
  int& operator[](int i) { return v[i]; }
};
__global__ void row_k(int* p) {
  Row r = {};
  p[0] = r[1];
}

// ---- a class in a kernel, whose function calls the host: nvcc refuses, the emulated GPU accepts
int local_f(int x) { return x; }
__global__ void local_k(int* p) {
  struct Local {
    __device__ int get(int x) { return local_f(x); }
  } l;
  p[0] = l.get(p[0]);
}

// ---- a class in a kernel, whose function says nothing: nvcc refuses, the emulated GPU accepts
__global__ void local_plain_k(int* p) {
  struct Local {
    int get_plain(int x) { return x; }
  } l;
  p[0] = l.get_plain(p[0]);
}

// ---- a constexpr member function, with a number that is known only at run time: nvcc refuses without --expt-relaxed-constexpr
struct Literal {
  int v;
  constexpr int literal_get() const { return v; }
};
__global__ void literal_k(int* p) {
  Literal l = {p[0]};
  p[0] = l.literal_get();
}

// ---- a virtual function of the host: nvcc refuses
struct Virtual {
  __device__ Virtual() {}
  virtual int virtual_get() { return 1; }
};
__global__ void virtual_k(int* p) {
  Virtual v;
  p[0] = v.virtual_get();
}

// ---- a function of the host through a reference to a base: nvcc refuses, the emulated GPU accepts
struct VirtualBase {
  __device__ VirtualBase() {}
  virtual int base_get() { return 1; }
};
__device__ int virtual_base(VirtualBase& v) { return v.base_get(); }

// ---- a friend of the host: nvcc refuses
struct Friendly {
  int v;
  friend int friend_get(Friendly f) { return f.v; }
};
__global__ void friend_k(int* p) {
  Friendly f = {p[0]};
  p[0] = friend_get(f);
}

// ---- an initial value of a variable of the host: nvcc accepts
__device__ int start_f(int x) { return x; }
int start_value = start_f(3);

// ---- operators that leave a call out: nvcc accepts
int spared_a(int x) { return x; }
int spared_b(int x) { return x; }
int spared_c(int x) { return x; }
const bool kSpared = false;
template <int n>
__global__ void spared_k(int* p) {
  if (kSpared && spared_a(p[0])) p[0] = 1;
  p[0] = n > 3 ? spared_b(p[0]) : 3;
  if (sizeof(int) == 4 || spared_c(p[0])) p[0] = 1;
}
void spared_start() { spared_k<2><<<1, 1>>>(nullptr); }

// ---- a member function of a class template that is defined outside, for the device: nvcc accepts
template <typename T>
struct Late {
  T v;
  __device__ T late_get() const;
};
template <typename T>
T Late<T>::late_get() const {
  return v;
}
__global__ void late_k(int* p) {
  Late<int> l = {p[0]};
  p[0] = l.late_get();
}

// ---- a friend for the device: nvcc accepts
struct Befriended {
  int v;
  friend __device__ int befriended_get(Befriended b) { return b.v; }
};
__global__ void befriended_k(int* p) {
  Befriended b = {p[0]};
  p[0] = befriended_get(b);
}

// ---- an operator for the device, from the host: nvcc refuses
struct Less {
  int v;
  __device__ bool operator<(const Less& o) const { return v < o.v; }
};
bool less_host(Less a, Less b) { return a < b; }
