/*!
 * \file dlarray.h
 * \brief The array that Python and C++ share: plain data, laid out as in ndarray.py.
 */
#ifndef DLSYS_H_
#define DLSYS_H_

#ifdef __cplusplus
#define DLSYS_EXTERN_C extern "C"
#else
#define DLSYS_EXTERN_C
#endif

#include <stddef.h>
#include <stdint.h>

DLSYS_EXTERN_C {
  /*! \brief Where memory lies. */
  typedef enum {
    kCPU = 1,
    kGPU = 2,
  } DLDeviceType;

  /*! \brief A device. Passed by value, so its layout is part of the interface. */
  typedef struct {
    int device_id;
    DLDeviceType device_type;
  } DLContext;

  /*! \brief A dense, row-major float32 array. */
  typedef struct {
    /*! \brief The elements; on a GPU, an address that only the GPU can read. */
    void* data;
    DLContext ctx;
    /*! \brief Number of dimensions; 0 is a single element. */
    int ndim;
    /*! \brief Length of every dimension. */
    int64_t* shape;
  } DLArray;

} /* DLSYS_EXTERN_C */

#endif /* DLSYS_H_ */
