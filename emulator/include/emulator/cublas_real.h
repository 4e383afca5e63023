/*!
 * \file cublas_real.h
 * \brief cuBLAS's functions for one type of numbers; cublas_v2.h includes it for float and double.
 *
 * EMULATOR_REAL is the type, EMULATOR_CUBLAS(name) adds its letter to a name.
 */

// Vectors.

/*! \brief y = alpha x + y. */
cublasStatus_t EMULATOR_CUBLAS(axpy)(cublasHandle_t handle, int n, const EMULATOR_REAL* alpha,
                                     const EMULATOR_REAL* x, int incx, EMULATOR_REAL* y, int incy);
/*! \brief x = alpha x. */
cublasStatus_t EMULATOR_CUBLAS(scal)(cublasHandle_t handle, int n, const EMULATOR_REAL* alpha,
                                     EMULATOR_REAL* x, int incx);
/*! \brief y = x. */
cublasStatus_t EMULATOR_CUBLAS(copy)(cublasHandle_t handle, int n, const EMULATOR_REAL* x, int incx,
                                     EMULATOR_REAL* y, int incy);
/*! \brief x and y change places. */
cublasStatus_t EMULATOR_CUBLAS(swap)(cublasHandle_t handle, int n, EMULATOR_REAL* x, int incx,
                                     EMULATOR_REAL* y, int incy);
/*! \brief result = sum of x[i] y[i]. */
cublasStatus_t EMULATOR_CUBLAS(dot)(cublasHandle_t handle, int n, const EMULATOR_REAL* x, int incx,
                                    const EMULATOR_REAL* y, int incy, EMULATOR_REAL* result);
/*! \brief result = root of the sum of x[i]^2. */
cublasStatus_t EMULATOR_CUBLAS(nrm2)(cublasHandle_t handle, int n, const EMULATOR_REAL* x, int incx,
                                     EMULATOR_REAL* result);
/*! \brief result = sum of |x[i]|. */
cublasStatus_t EMULATOR_CUBLAS(asum)(cublasHandle_t handle, int n, const EMULATOR_REAL* x, int incx,
                                     EMULATOR_REAL* result);
/*! \brief x, y = c x + s y, c y - s x. */
cublasStatus_t EMULATOR_CUBLAS(rot)(cublasHandle_t handle, int n, EMULATOR_REAL* x, int incx,
                                    EMULATOR_REAL* y, int incy, const EMULATOR_REAL* c,
                                    const EMULATOR_REAL* s);
/*! \brief the rotation that makes (a, b) into (r, 0). */
cublasStatus_t EMULATOR_CUBLAS(rotg)(cublasHandle_t handle, EMULATOR_REAL* a, EMULATOR_REAL* b,
                                     EMULATOR_REAL* c, EMULATOR_REAL* s);
cublasStatus_t EMULATOR_CUBLAS(rotm)(cublasHandle_t handle, int n, EMULATOR_REAL* x, int incx,
                                     EMULATOR_REAL* y, int incy, const EMULATOR_REAL* param);
cublasStatus_t EMULATOR_CUBLAS(rotmg)(cublasHandle_t handle, EMULATOR_REAL* d1, EMULATOR_REAL* d2,
                                      EMULATOR_REAL* x1, const EMULATOR_REAL* y1,
                                      EMULATOR_REAL* param);

// Matrices and vectors. gb, sb and tb are matrices of diagonals, sp and tp packed ones.

/*! \brief y = alpha op(A) x + beta y; A is m x n. */
cublasStatus_t EMULATOR_CUBLAS(gemv)(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     const EMULATOR_REAL* x, int incx, const EMULATOR_REAL* beta,
                                     EMULATOR_REAL* y, int incy);
/*! \brief the same; A has kl diagonals below the main one, and ku above. */
cublasStatus_t EMULATOR_CUBLAS(gbmv)(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                                     int kl, int ku, const EMULATOR_REAL* alpha,
                                     const EMULATOR_REAL* A, int lda, const EMULATOR_REAL* x,
                                     int incx, const EMULATOR_REAL* beta, EMULATOR_REAL* y,
                                     int incy);
/*! \brief A = alpha x y^EMULATOR_REAL + A; A is m x n. */
cublasStatus_t EMULATOR_CUBLAS(ger)(cublasHandle_t handle, int m, int n, const EMULATOR_REAL* alpha,
                                    const EMULATOR_REAL* x, int incx, const EMULATOR_REAL* y,
                                    int incy, EMULATOR_REAL* A, int lda);
/*! \brief y = alpha A x + beta y; A is symmetric, and one half of it is read. */
cublasStatus_t EMULATOR_CUBLAS(symv)(cublasHandle_t handle, cublasFillMode_t uplo, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     const EMULATOR_REAL* x, int incx, const EMULATOR_REAL* beta,
                                     EMULATOR_REAL* y, int incy);
cublasStatus_t EMULATOR_CUBLAS(sbmv)(cublasHandle_t handle, cublasFillMode_t uplo, int n, int k,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     const EMULATOR_REAL* x, int incx, const EMULATOR_REAL* beta,
                                     EMULATOR_REAL* y, int incy);
cublasStatus_t EMULATOR_CUBLAS(spmv)(cublasHandle_t handle, cublasFillMode_t uplo, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A,
                                     const EMULATOR_REAL* x, int incx, const EMULATOR_REAL* beta,
                                     EMULATOR_REAL* y, int incy);
/*! \brief A = alpha x x^EMULATOR_REAL + A. */
cublasStatus_t EMULATOR_CUBLAS(syr)(cublasHandle_t handle, cublasFillMode_t uplo, int n,
                                    const EMULATOR_REAL* alpha, const EMULATOR_REAL* x, int incx,
                                    EMULATOR_REAL* A, int lda);
cublasStatus_t EMULATOR_CUBLAS(spr)(cublasHandle_t handle, cublasFillMode_t uplo, int n,
                                    const EMULATOR_REAL* alpha, const EMULATOR_REAL* x, int incx,
                                    EMULATOR_REAL* A);
/*! \brief A = alpha (x y^EMULATOR_REAL + y x^EMULATOR_REAL) + A. */
cublasStatus_t EMULATOR_CUBLAS(syr2)(cublasHandle_t handle, cublasFillMode_t uplo, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* x, int incx,
                                     const EMULATOR_REAL* y, int incy, EMULATOR_REAL* A, int lda);
cublasStatus_t EMULATOR_CUBLAS(spr2)(cublasHandle_t handle, cublasFillMode_t uplo, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* x, int incx,
                                     const EMULATOR_REAL* y, int incy, EMULATOR_REAL* A);
/*! \brief x = op(A) x; A is a triangle. */
cublasStatus_t EMULATOR_CUBLAS(trmv)(cublasHandle_t handle, cublasFillMode_t uplo,
                                     cublasOperation_t trans, cublasDiagType_t diag, int n,
                                     const EMULATOR_REAL* A, int lda, EMULATOR_REAL* x, int incx);
/*! \brief x becomes the solution of op(A) x' = x. */
cublasStatus_t EMULATOR_CUBLAS(trsv)(cublasHandle_t handle, cublasFillMode_t uplo,
                                     cublasOperation_t trans, cublasDiagType_t diag, int n,
                                     const EMULATOR_REAL* A, int lda, EMULATOR_REAL* x, int incx);
cublasStatus_t EMULATOR_CUBLAS(tbmv)(cublasHandle_t handle, cublasFillMode_t uplo,
                                     cublasOperation_t trans, cublasDiagType_t diag, int n, int k,
                                     const EMULATOR_REAL* A, int lda, EMULATOR_REAL* x, int incx);
cublasStatus_t EMULATOR_CUBLAS(tbsv)(cublasHandle_t handle, cublasFillMode_t uplo,
                                     cublasOperation_t trans, cublasDiagType_t diag, int n, int k,
                                     const EMULATOR_REAL* A, int lda, EMULATOR_REAL* x, int incx);
cublasStatus_t EMULATOR_CUBLAS(tpmv)(cublasHandle_t handle, cublasFillMode_t uplo,
                                     cublasOperation_t trans, cublasDiagType_t diag, int n,
                                     const EMULATOR_REAL* A, EMULATOR_REAL* x, int incx);
cublasStatus_t EMULATOR_CUBLAS(tpsv)(cublasHandle_t handle, cublasFillMode_t uplo,
                                     cublasOperation_t trans, cublasDiagType_t diag, int n,
                                     const EMULATOR_REAL* A, EMULATOR_REAL* x, int incx);

// Matrices.

/*! \brief C = alpha op(A) op(B) + beta C; op(A) is m x k, op(B) k x n, C m x n. */
cublasStatus_t EMULATOR_CUBLAS(gemm)(cublasHandle_t handle, cublasOperation_t transa,
                                     cublasOperation_t transb, int m, int n, int k,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     const EMULATOR_REAL* B, int ldb, const EMULATOR_REAL* beta,
                                     EMULATOR_REAL* C, int ldc);
/*! \brief the same for matrices whose addresses are in arrays, in device memory themselves. */
cublasStatus_t EMULATOR_CUBLAS(gemmBatched)(cublasHandle_t handle, cublasOperation_t transa,
                                            cublasOperation_t transb, int m, int n, int k,
                                            const EMULATOR_REAL* alpha,
                                            const EMULATOR_REAL* const A[], int lda,
                                            const EMULATOR_REAL* const B[], int ldb,
                                            const EMULATOR_REAL* beta, EMULATOR_REAL* const C[],
                                            int ldc, int count);
/*! \brief the same for `count` triples of matrices, each `stride` elements after the last. */
cublasStatus_t EMULATOR_CUBLAS(gemmStridedBatched)(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda, long long strideA,
    const EMULATOR_REAL* B, int ldb, long long strideB, const EMULATOR_REAL* beta, EMULATOR_REAL* C,
    int ldc, long long strideC, int count);
/*! \brief C = alpha A B + beta C, or alpha B A + beta C; A is symmetric. */
cublasStatus_t EMULATOR_CUBLAS(symm)(cublasHandle_t handle, cublasSideMode_t side,
                                     cublasFillMode_t uplo, int m, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     const EMULATOR_REAL* B, int ldb, const EMULATOR_REAL* beta,
                                     EMULATOR_REAL* C, int ldc);
/*! \brief C = alpha op(A) op(A)^EMULATOR_REAL + beta C, one half of it. */
cublasStatus_t EMULATOR_CUBLAS(syrk)(cublasHandle_t handle, cublasFillMode_t uplo,
                                     cublasOperation_t trans, int n, int k,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     const EMULATOR_REAL* beta, EMULATOR_REAL* C, int ldc);
cublasStatus_t EMULATOR_CUBLAS(syr2k)(cublasHandle_t handle, cublasFillMode_t uplo,
                                      cublasOperation_t trans, int n, int k,
                                      const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                      const EMULATOR_REAL* B, int ldb, const EMULATOR_REAL* beta,
                                      EMULATOR_REAL* C, int ldc);
/*! \brief C = alpha op(A) B, or alpha B op(A); A is a triangle, and C may be B. */
cublasStatus_t EMULATOR_CUBLAS(trmm)(cublasHandle_t handle, cublasSideMode_t side,
                                     cublasFillMode_t uplo, cublasOperation_t trans,
                                     cublasDiagType_t diag, int m, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     const EMULATOR_REAL* B, int ldb, EMULATOR_REAL* C, int ldc);
/*! \brief B becomes the solution of op(A) X = alpha B, or of X op(A) = alpha B. */
cublasStatus_t EMULATOR_CUBLAS(trsm)(cublasHandle_t handle, cublasSideMode_t side,
                                     cublasFillMode_t uplo, cublasOperation_t trans,
                                     cublasDiagType_t diag, int m, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     EMULATOR_REAL* B, int ldb);
/*! \brief C = alpha op(A) + beta op(B); C may be A or B where that is not transposed. */
cublasStatus_t EMULATOR_CUBLAS(geam)(cublasHandle_t handle, cublasOperation_t transa,
                                     cublasOperation_t transb, int m, int n,
                                     const EMULATOR_REAL* alpha, const EMULATOR_REAL* A, int lda,
                                     const EMULATOR_REAL* beta, const EMULATOR_REAL* B, int ldb,
                                     EMULATOR_REAL* C, int ldc);
/*! \brief C = diag(x) A, or A diag(x). */
cublasStatus_t EMULATOR_CUBLAS(dgmm)(cublasHandle_t handle, cublasSideMode_t side, int m, int n,
                                     const EMULATOR_REAL* A, int lda, const EMULATOR_REAL* x,
                                     int incx, EMULATOR_REAL* C, int ldc);
