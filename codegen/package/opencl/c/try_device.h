/* The device that the program runs on, and what it is asked through. */
#define TRY_MOST 32 /* of platforms, and of devices of one */

typedef struct try_device {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
} try_device;

/* Whether a call went well; says so if it did not. */
static int try_well(cl_int status, const char *doing)
{
    if (status != CL_SUCCESS) fprintf(stderr, "%s: %s (%d)\n", doing, pfx_error_name(status), (int)status);
    return status == CL_SUCCESS;
}

typedef struct try_names {
    char platform[256], device[256], version[256];
} try_names;

static try_names try_name(cl_platform_id platform, cl_device_id device)
{
    try_names names = {"", "", ""};
    (void)clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof names.platform - 1, names.platform, NULL);
    (void)clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof names.device - 1, names.device, NULL);
    (void)clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof names.version - 1, names.version, NULL);
    return names;
}

/* How well a device suits: 0 where it is not meant, more for the kind that the kernels were made for. */
static int try_suits(cl_platform_id platform, cl_device_id device, const char *wanted)
{
    const try_names names = try_name(platform, device);
    cl_device_type type = 0;
    (void)clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (wanted && !strstr(names.platform, wanted) && !strstr(names.device, wanted)) return 0;
    return type & TRY_KIND ? 2 : 1;
}

/* Lists what there is, and takes the first device that suits best. */
static int try_find(try_device *o, const char *wanted)
{
    cl_platform_id platforms[TRY_MOST];
    cl_device_id devices[TRY_MOST];
    cl_uint platform_count = 0, device_count, p, d;
    int best = 0;
    if (!try_well(clGetPlatformIDs(TRY_MOST, platforms, &platform_count), "looking for platforms")) return 0;
    printf("devices:\n");
    for (p = 0; p < platform_count && p < TRY_MOST; p++) {
        device_count = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, TRY_MOST, devices, &device_count) != CL_SUCCESS) continue;
        for (d = 0; d < device_count && d < TRY_MOST; d++) {
            const try_names names = try_name(platforms[p], devices[d]);
            const int suits = try_suits(platforms[p], devices[d], wanted);
            printf("  %s, %s, driver %s\n", names.platform, names.device, names.version);
            if (suits <= best) continue;
            best = suits;
            o->platform = platforms[p];
            o->device = devices[d];
        }
    }
    if (!best) fprintf(stderr, "no device%s%s\n", wanted ? " with a name like " : "", wanted ? wanted : "");
    return best > 0;
}

static void try_close(try_device *o)
{
    if (o->queue) clReleaseCommandQueue(o->queue);
    if (o->context) clReleaseContext(o->context);
}

static int try_open(try_device *o, const char *wanted)
{
    cl_int status;
    memset(o, 0, sizeof *o);
    if (!try_find(o, wanted)) return 0;
    printf("taken: %s\n", try_name(o->platform, o->device).device);
    o->context = clCreateContext(NULL, 1, &o->device, NULL, NULL, &status);
    if (!try_well(status, "making a context")) return 0;
    o->queue = clCreateCommandQueue(o->context, o->device, CL_QUEUE_PROFILING_ENABLE, &status);
    return try_well(status, "making a queue");
}
