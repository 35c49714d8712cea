"""An OpenCL implementation that computes nothing, to test the library: it counts objects, and fails on demand."""

from __future__ import annotations

STUB = r"""
#include "heat.h"
#include <stdlib.h>
#include <string.h>

/* What all objects are; a call that may fail does so when as many went well before. */
typedef struct object { int references; } object;
static long calls, bad_call;
static int live;

static int fails(void) { return ++calls == bad_call; }

static void *made(cl_int *status)
{
  object *const o = fails() ? NULL : (object *)malloc(sizeof *o);
  *status = o ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  if (o) o->references = 1, live++;
  return o;
}

static cl_int retain(void *o) { ((object *)o)->references++; return CL_SUCCESS; }

static cl_int release(void *o)
{
  if (--((object *)o)->references == 0) free(o), live--;
  return CL_SUCCESS;
}

static cl_int tried(void) { return fails() ? CL_OUT_OF_RESOURCES : CL_SUCCESS; }

static cl_int told(void *value, const void *text, size_t bytes, size_t *size)
{
  if (fails()) return CL_OUT_OF_RESOURCES;
  if (value) memcpy(value, text, bytes);
  if (size) *size = bytes;
  return CL_SUCCESS;
}

cl_int clRetainContext(cl_context c) { return fails() ? CL_OUT_OF_RESOURCES : retain(c); }
cl_int clReleaseContext(cl_context c) { return release(c); }
cl_program clCreateProgramWithSource(cl_context c, cl_uint n, const char **text, const size_t *length, cl_int *status)
{
  (void)c, (void)n, (void)length;
  if (!strlen(*text)) abort();
  return (cl_program)made(status);
}
cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device_id *d, const char *options,
                      void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
  (void)p, (void)n, (void)d, (void)options, (void)notify, (void)data;
  return fails() ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}
cl_int clGetProgramBuildInfo(cl_program p, cl_device_id d, cl_program_build_info which, size_t room, void *value,
                             size_t *size)
{
  (void)p, (void)d, (void)which, (void)room;
  return told(value, "a log", 5, size);
}
cl_int clReleaseProgram(cl_program p) { return release(p); }
cl_kernel clCreateKernel(cl_program p, const char *name, cl_int *status)
{
  (void)p, (void)name;
  return (cl_kernel)made(status);
}
cl_int clReleaseKernel(cl_kernel k) { return release(k); }
cl_mem clCreateBuffer(cl_context c, cl_mem_flags flags, size_t bytes, void *data, cl_int *status)
{
  (void)c, (void)flags, (void)bytes, (void)data;
  return (cl_mem)made(status);
}
cl_int clReleaseMemObject(cl_mem m) { return release(m); }
cl_int clGetMemObjectInfo(cl_mem m, cl_mem_info which, size_t room, void *value, size_t *size)
{
  const size_t bytes = 1 << 20;
  (void)m, (void)which, (void)room;
  return told(value, &bytes, sizeof bytes, size);
}
cl_int clGetCommandQueueInfo(cl_command_queue q, cl_command_queue_info which, size_t room, void *value, size_t *size)
{
  const cl_command_queue_properties none = 0;
  (void)q, (void)which, (void)room;
  return told(value, &none, sizeof none, size);
}
cl_int clSetKernelArg(cl_kernel k, cl_uint at, size_t bytes, const void *value)
{
  (void)k, (void)at, (void)bytes, (void)value;
  return tried();
}
cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dimensions, const size_t *offset,
                              const size_t *all, const size_t *items, cl_uint n, const cl_event *waits, cl_event *event)
{
  cl_int status;
  (void)q, (void)k, (void)dimensions, (void)offset, (void)all, (void)items;
  if ((n > 0) != (waits != NULL)) abort();
  *event = (cl_event)made(&status);
  return status;
}
cl_int clEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n, const cl_event *waits, cl_event *event)
{
  cl_int status;
  (void)q, (void)n, (void)waits;
  *event = (cl_event)made(&status);
  return status;
}
cl_int clRetainEvent(cl_event e) { return retain(e); }
cl_int clReleaseEvent(cl_event e) { return release(e); }

/* A program's life: made, called with more and more, and with nothing to launch; its worst status. */
static cl_int life(cl_context context, cl_mem memory)
{
  static const int64_t steps[] = {2, 0, 5};
  heat_program *program;
  cl_event began, done;
  cl_int worst = heat_create(&program, context, NULL, "heat.cl", NULL);
  int n;
  if ((worst == CL_SUCCESS) != (program != NULL)) abort();
  for (n = 0; n < 3 && program; n++) {
    const int ask = n != 2;
    const cl_int status = heat_enqueue(program, NULL, 100 * (n + 1), steps[n], 0.5f, memory, memory, 0, NULL,
                                       ask ? &began : NULL, ask ? &done : NULL);
    if (status != CL_SUCCESS) worst = status;
    if (ask && (status == CL_SUCCESS) != (began && done)) abort();
    if (ask && status == CL_SUCCESS) clReleaseEvent(began), clReleaseEvent(done);
  }
  heat_release(program);
  return worst;
}

int main(void)
{
  object context = {1}, memory = {1};
  long faults = -1;
  do {
    calls = 0;
    bad_call = ++faults;
    const cl_int status = life((cl_context)&context, (cl_mem)&memory);
    const int failed = faults > 0 && calls >= faults;
    if (live || context.references != 1 || failed != (status != CL_SUCCESS)) {
      printf("call %ld of %ld: status %s, %d objects left\n", faults, calls, heat_error_name(status), live);
      return 1;
    }
  } while (faults == 0 || calls >= faults);
  printf("%ld faults\n", faults - 1);
  return 0;
}
"""
"""With the library of `opencl_programs.by_hand`, a program that lets each of its calls fail in turn."""
