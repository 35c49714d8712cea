/* Where CBLAS's own header has been included before, its types are used; include it before this file, never after. */
#if !defined(CBLAS_H) && !defined(CBLAS_ENUM_DEFINED_H) && !defined(__MKL_CBLAS_H__)
#define CBLAS_ENUM_DEFINED_H
typedef enum CBLAS_LAYOUT { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 } CBLAS_TRANSPOSE;
typedef enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 } CBLAS_UPLO;
#define CBLAS_ORDER CBLAS_LAYOUT
#endif
#if !defined(PFX_CBLAS) /* define it before, to give the functions other names */
#define PFX_CBLAS(name) cblas_##name
#endif
