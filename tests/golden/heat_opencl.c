/* heat for OpenCL: see heat.h. */
#include "heat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAT_BUILD_OPTIONS "-cl-std=CL1.2"
#define HEAT_SCRATCH 1 /* arrays that kernels hand on to each other */
#define HEAT_KERNELS 2
static const char *const heat_kernels[HEAT_KERNELS] = {
  "heat_i",
  "heat_once",
};

/* The name of a status, as OpenCL 1.2 has them. */
const char *heat_error_name(cl_int status)
{
#define HEAT_NAMED(code) case code: return #code
    switch (status) {
    HEAT_NAMED(CL_SUCCESS);
    HEAT_NAMED(CL_DEVICE_NOT_FOUND);
    HEAT_NAMED(CL_DEVICE_NOT_AVAILABLE);
    HEAT_NAMED(CL_COMPILER_NOT_AVAILABLE);
    HEAT_NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE);
    HEAT_NAMED(CL_OUT_OF_RESOURCES);
    HEAT_NAMED(CL_OUT_OF_HOST_MEMORY);
    HEAT_NAMED(CL_PROFILING_INFO_NOT_AVAILABLE);
    HEAT_NAMED(CL_BUILD_PROGRAM_FAILURE);
    HEAT_NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET);
    HEAT_NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    HEAT_NAMED(CL_INVALID_VALUE);
    HEAT_NAMED(CL_INVALID_DEVICE_TYPE);
    HEAT_NAMED(CL_INVALID_PLATFORM);
    HEAT_NAMED(CL_INVALID_DEVICE);
    HEAT_NAMED(CL_INVALID_CONTEXT);
    HEAT_NAMED(CL_INVALID_QUEUE_PROPERTIES);
    HEAT_NAMED(CL_INVALID_COMMAND_QUEUE);
    HEAT_NAMED(CL_INVALID_HOST_PTR);
    HEAT_NAMED(CL_INVALID_MEM_OBJECT);
    HEAT_NAMED(CL_INVALID_BUILD_OPTIONS);
    HEAT_NAMED(CL_INVALID_PROGRAM);
    HEAT_NAMED(CL_INVALID_PROGRAM_EXECUTABLE);
    HEAT_NAMED(CL_INVALID_KERNEL_NAME);
    HEAT_NAMED(CL_INVALID_KERNEL_DEFINITION);
    HEAT_NAMED(CL_INVALID_KERNEL);
    HEAT_NAMED(CL_INVALID_ARG_INDEX);
    HEAT_NAMED(CL_INVALID_ARG_VALUE);
    HEAT_NAMED(CL_INVALID_ARG_SIZE);
    HEAT_NAMED(CL_INVALID_KERNEL_ARGS);
    HEAT_NAMED(CL_INVALID_WORK_DIMENSION);
    HEAT_NAMED(CL_INVALID_WORK_GROUP_SIZE);
    HEAT_NAMED(CL_INVALID_WORK_ITEM_SIZE);
    HEAT_NAMED(CL_INVALID_GLOBAL_OFFSET);
    HEAT_NAMED(CL_INVALID_EVENT_WAIT_LIST);
    HEAT_NAMED(CL_INVALID_EVENT);
    HEAT_NAMED(CL_INVALID_OPERATION);
    HEAT_NAMED(CL_INVALID_BUFFER_SIZE);
    HEAT_NAMED(CL_INVALID_GLOBAL_WORK_SIZE);
    HEAT_NAMED(CL_INVALID_PROPERTY);
    default: return status == -1001 ? "CL_PLATFORM_NOT_FOUND_KHR" : "an OpenCL error of no known name";
    }
#undef HEAT_NAMED
}

/* The built program: its kernels, and memory that calls share. */
struct heat_program {
    cl_context context;
    cl_program built;
    cl_kernel kernel[HEAT_KERNELS];
    cl_mem scratch[HEAT_SCRATCH + 1];
    int64_t scratch_bytes[HEAT_SCRATCH + 1];
    FILE *messages;
};

/* Says what failed, if somebody listens; returns the status. */
static cl_int heat_failed(FILE *messages, cl_int status, const char *doing, const char *what)
{
    if (messages) fprintf(messages, "heat: %s %s: %s (%d)\n", doing, what, heat_error_name(status), (int)status);
    return status;
}

/* A text file with '\0' behind it, to be freed; NULL, with errno, where it cannot be read. */
static char *heat_read(const char *path)
{
    FILE *const file = fopen(path, "rb");
    size_t room = 1 << 16, length = 0, found;
    char *text = NULL;
    if (!file) return NULL;
    do {
        char *const longer = (char *)realloc(text, room);
        if (!longer) break;
        text = longer;
        found = fread(text + length, 1, room - length - 1, file);
        length += found;
        text[length] = '\0';
        room *= 2;
    } while (found);
    if (!feof(file)) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* Prints what the device's compiler has to say. */
static void heat_print_log(FILE *messages, cl_program built, cl_device_id device)
{
    size_t bytes = 0;
    char *log;
    if (!messages || clGetProgramBuildInfo(built, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) != CL_SUCCESS) return;
    log = (char *)malloc(bytes + 1);
    if (!log) return;
    log[bytes] = '\0';
    if (clGetProgramBuildInfo(built, device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL) == CL_SUCCESS)
        fprintf(messages, "%s\n", log);
    free(log);
}

static cl_int heat_build(heat_program *program, cl_device_id device, const char *path)
{
    FILE *const messages = program->messages;
    cl_int status = CL_SUCCESS;
    char *const text = heat_read(path);
    const char *source = text;
    int at;
    if (!text) {
        if (messages) fprintf(messages, "heat: cannot read %s: %s\n", path, strerror(errno));
        return CL_INVALID_VALUE;
    }
    program->built = clCreateProgramWithSource(program->context, 1, &source, NULL, &status);
    free(text);
    if (status != CL_SUCCESS) return heat_failed(messages, status, "making a program from", path);
    status = clBuildProgram(program->built, 1, &device, HEAT_BUILD_OPTIONS, NULL, NULL);
    if (status != CL_SUCCESS) {
        heat_print_log(messages, program->built, device);
        return heat_failed(messages, status, "building", path);
    }
    for (at = 0; at < HEAT_KERNELS; at++) {
        program->kernel[at] = clCreateKernel(program->built, heat_kernels[at], &status);
        if (status != CL_SUCCESS) return heat_failed(messages, status, "making the kernel", heat_kernels[at]);
    }
    return CL_SUCCESS;
}

cl_int heat_create(heat_program **made, cl_context context, cl_device_id device, const char *path, FILE *messages)
{
    heat_program *const program = (heat_program *)calloc(1, sizeof *program);
    cl_int status;
    *made = NULL;
    if (!program) return CL_OUT_OF_HOST_MEMORY;
    program->messages = messages;
    status = clRetainContext(context);
    if (status != CL_SUCCESS) {
        free(program);
        return heat_failed(messages, status, "taking", "the context");
    }
    program->context = context;
    status = heat_build(program, device, path);
    if (status == CL_SUCCESS) *made = program;
    else heat_release(program);
    return status;
}

void heat_release(heat_program *program)
{
    int at;
    if (!program) return;
    for (at = 0; at < HEAT_SCRATCH; at++)
        if (program->scratch[at]) clReleaseMemObject(program->scratch[at]);
    for (at = 0; at < HEAT_KERNELS; at++)
        if (program->kernel[at]) clReleaseKernel(program->kernel[at]);
    if (program->built) clReleaseProgram(program->built);
    clReleaseContext(program->context);
    free(program);
}

/* One call on its way: after the first failure, all that follows does nothing. */
typedef struct heat_call {
    heat_program *program;
    cl_command_queue queue;
    cl_uint waits; /* what the first command waits for */
    const cl_event *wait_list;
    cl_event began, done; /* the first command's, and the latest one's */
    cl_int status;
} heat_call;

static void heat_fail(heat_call *c, cl_int status, const char *doing, const char *what)
{
    c->status = heat_failed(c->program->messages, status, doing, what);
}

/* Commands run one after the other: that is all that orders the launches. */
static void heat_check_queue(heat_call *c)
{
    cl_command_queue_properties properties = 0;
    c->status = clGetCommandQueueInfo(c->queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (c->status != CL_SUCCESS) heat_fail(c, c->status, "looking at", "the queue");
    else if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        heat_fail(c, CL_INVALID_QUEUE_PROPERTIES, "finding no order in", "the queue");
}

/* The bytes of an array are no more than its buffer has. */
static void heat_check_array(heat_call *c, const char *name, cl_mem buffer, int64_t bytes, int rank,
                            const int64_t *extent)
{
    size_t found = 0;
    int d, empty = 0;
    for (d = 0; d < rank && c->status == CL_SUCCESS; d++) {
        const int64_t most = extent[d] > 0 ? INT64_MAX / extent[d] : INT64_MAX;
        empty |= extent[d] == 0;
        if (extent[d] < 0) heat_fail(c, CL_INVALID_VALUE, "finding a negative extent in", name);
        else if (bytes > most) heat_fail(c, CL_INVALID_VALUE, "counting the bytes of", name);
        else if (!empty) bytes *= extent[d];
    }
    if (c->status != CL_SUCCESS || empty) return;
    c->status = clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof found, &found, NULL);
    if (c->status != CL_SUCCESS) heat_fail(c, c->status, "looking at the buffer", name);
    else if (found < (uint64_t)bytes) heat_fail(c, CL_INVALID_BUFFER_SIZE, "finding too few bytes in", name);
}

static void heat_argument(heat_call *c, int kernel, cl_uint at, size_t bytes, const void *value)
{
    if (c->status != CL_SUCCESS) return;
    c->status = clSetKernelArg(c->program->kernel[kernel], at, bytes, value);
    if (c->status != CL_SUCCESS) heat_fail(c, c->status, "setting an argument of", heat_kernels[kernel]);
}

/* A command is in the queue; what follows it waits for it alone. */
static void heat_queued(heat_call *c, cl_event event)
{
    c->waits = 0;
    c->wait_list = NULL;
    if (c->done) {
        clReleaseEvent(c->done);
    } else {
        c->began = event;
        clRetainEvent(event);
    }
    c->done = event;
}

/* So many work-groups along each dimension; nothing is to be done where one of them is 0. */
static void heat_launch(heat_call *c, int kernel, cl_uint dimensions, const int64_t *groups, const size_t *items)
{
    size_t all[3];
    cl_event event;
    cl_uint d;
    for (d = 0; d < dimensions; d++) {
        if (groups[d] <= 0) return;
        all[d] = (size_t)groups[d] * items[d];
    }
    if (c->status != CL_SUCCESS) return;
    c->status = clEnqueueNDRangeKernel(c->queue, c->program->kernel[kernel], dimensions, NULL, all, items, c->waits,
                                       c->wait_list, &event);
    if (c->status == CL_SUCCESS) heat_queued(c, event);
    else heat_fail(c, c->status, "launching", heat_kernels[kernel]);
}

/* Gives a caller an event that is asked for. */
static void heat_hand_over(heat_call *c, cl_event event, cl_event *to)
{
    const int wanted = to && c->status == CL_SUCCESS;
    if (to) *to = wanted ? event : NULL;
    if (event && !wanted) clReleaseEvent(event);
}

/* The end of a call. One that launched nothing has a marker in place of a launch. */
static cl_int heat_finish(heat_call *c, cl_event *began, cl_event *done)
{
    if (c->status == CL_SUCCESS && !c->done) {
        cl_event event;
        c->status = clEnqueueMarkerWithWaitList(c->queue, c->waits, c->wait_list, &event);
        if (c->status == CL_SUCCESS) heat_queued(c, event);
        else heat_fail(c, c->status, "queueing", "a marker");
    }
    heat_hand_over(c, c->began, began);
    heat_hand_over(c, c->done, done);
    return c->status;
}

/* A size that a caller gives. */
static void heat_check_size(heat_call *c, const char *name, int64_t size)
{
    const int right = size >= 0 && size <= HEAT_SIZE_LIMIT;
    if (c->status == CL_SUCCESS && !right) heat_fail(c, CL_INVALID_VALUE, "looking at the size", name);
}

/* Memory that kernels hand on to each other. It stays for later calls, until one needs more. */
static cl_mem heat_scratch(heat_call *c, int at, int64_t bytes)
{
    heat_program *const program = c->program;
    cl_mem *const memory = &program->scratch[at];
    if (c->status != CL_SUCCESS || (*memory && program->scratch_bytes[at] >= bytes)) return *memory;
    if (*memory) clReleaseMemObject(*memory);
    *memory = NULL;
    c->status = CL_INVALID_BUFFER_SIZE;
    if ((int64_t)(size_t)bytes == bytes)
        *memory = clCreateBuffer(program->context, CL_MEM_READ_WRITE, bytes > 0 ? (size_t)bytes : 1, NULL, &c->status);
    program->scratch_bytes[at] = bytes;
    if (c->status != CL_SUCCESS) heat_fail(c, c->status, "making", "scratch memory");
    return *memory;
}

static void heat_launch_i(heat_call *c, int64_t groups_0, int64_t M, float a, cl_mem A, cl_mem kept)
{
    const int64_t groups[] = {groups_0};
    const size_t items[] = {4};
    heat_argument(c, 0, 0, sizeof M, &M);
    heat_argument(c, 0, 1, sizeof a, &a);
    heat_argument(c, 0, 2, sizeof A, &A);
    heat_argument(c, 0, 3, sizeof kept, &kept);
    heat_launch(c, 0, 1, groups, items);
}

static void heat_launch_once(heat_call *c_2, int64_t groups_0, int64_t M, int64_t c, cl_mem A, cl_mem kept)
{
    const int64_t groups[] = {groups_0};
    const size_t items[] = {1};
    heat_argument(c_2, 1, 0, sizeof M, &M);
    heat_argument(c_2, 1, 1, sizeof c, &c);
    heat_argument(c_2, 1, 2, sizeof A, &A);
    heat_argument(c_2, 1, 3, sizeof kept, &kept);
    heat_launch(c_2, 1, 1, groups, items);
}

static inline int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t floord(int64_t a, int64_t b) { return a / b - (a % b < 0); }  /* b > 0 */

cl_int heat_enqueue(heat_program *program, cl_command_queue queue, int64_t M, int64_t T, float a, cl_mem A, cl_mem S,
        cl_uint waits, const cl_event *wait_list, cl_event *began, cl_event *done)
{
    heat_call c_2 = {program, queue, waits, wait_list, NULL, NULL, CL_SUCCESS};
    heat_check_queue(&c_2);
    heat_check_size(&c_2, "M", M);
    heat_check_size(&c_2, "T", T);
    heat_check_array(&c_2, "A", A, 4, 1, (const int64_t[]){M});
    heat_check_array(&c_2, "S", S, 4, 1, (const int64_t[]){T});
    if (c_2.status != CL_SUCCESS) return heat_finish(&c_2, began, done);
    if (!(M > 0)) return heat_finish(&c_2, began, done);
    const cl_mem kept = heat_scratch(&c_2, 0, 4*M);
    for (int64_t c = 0; c < T; c += 1) {
      if (M > 2) {
        heat_launch_i(&c_2, floord(M + 1, 4), M, a, A, kept);
      } else {
        heat_launch_once(&c_2, 0, M, c, A, kept);
      }
      heat_launch_once(&c_2, imin(1, M), M, c, A, kept);
    }
    return heat_finish(&c_2, began, done);
}
