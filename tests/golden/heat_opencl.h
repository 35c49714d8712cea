/* heat for OpenCL: the kernels are in heat.cl, and heat.c launches them. Made by poly 0.0.

   heat computes

       def heat(a: poly.f32, A: poly.f32[M], S: poly.f32[T]):
           for t in range(T):
               for i in range(1, M - 1):
                   A[i] = a * (A[i - 1] + A[i + 1]) + S[t]

       M, T  sizes, from 0 to HEAT_SIZE_LIMIT
       a     f32, by value
       A     f32[M], read and written
       S     f32[T], read

   Arrays are row-major without gaps; a buffer may be larger than its array. An output shares no memory with another
   array.

   For any size: a schedule that was given, for opencl256 and 2 threads.

   Its loops, for opencl256:

       for t in range(T):
           for i in range(1, M - 1):
               A[i] = a * (A[i - 1] + A[i + 1]) + S[t]

   Build heat.c into a program that links with -lOpenCL. heat_check.c is one: it checks the kernels on a device.
       cc -O2 heat.c heat_check.c -o heat_check -lOpenCL -lm && ./heat_check */
#ifndef HEAT_OPENCL_H
#define HEAT_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#ifdef __APPLE__
#include <OpenCL/opencl.h>
#else
#include <CL/cl.h>
#endif
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most that a size may be. */
#define HEAT_SIZE_LIMIT INT64_C(0xFFFFFFFFFF)

/* The kernels, built for one device. */
typedef struct heat_program heat_program;

/* Reads and builds the .cl file at `path` for a device of the context. `messages` is where this and later calls tell
   what fails, with the log of the device's compiler; NULL for nowhere. On failure, *made is NULL. */
cl_int heat_create(heat_program **made, cl_context context, cl_device_id device, const char *path, FILE *messages);

/* Puts the launches into a queue of the context and device, which must run its commands in order, once the events of
   the wait list are complete; nothing is waited for. *began and *done become the events of the first and of the last
   launch, to be released, unless their pointers are NULL. A negative size or a buffer that is too small is an error,
   and nothing is launched then.
   A program serves one queue, and one thread, at a time: calls share its kernels and scratch memory. */
cl_int heat_enqueue(heat_program *program, cl_command_queue queue, int64_t M, int64_t T, float a, cl_mem A, cl_mem S,
        cl_uint waits, const cl_event *wait_list, cl_event *began, cl_event *done);

/* After the last call's commands are complete. NULL is fine. */
void heat_release(heat_program *program);

/* The name of a status, such as CL_OUT_OF_RESOURCES. */
const char *heat_error_name(cl_int status);

#ifdef __cplusplus
}
#endif

#endif /* HEAT_OPENCL_H */
