/* The built program: its kernels, and memory that calls share. */
struct pfx_program {
    cl_context context;
    cl_program built;
    cl_kernel kernel[PFX_KERNELS];
    cl_mem scratch[PFX_SCRATCH + 1];
    int64_t scratch_bytes[PFX_SCRATCH + 1];
    FILE *messages;
};

/* Says what failed, if somebody listens; returns the status. */
static cl_int pfx_failed(FILE *messages, cl_int status, const char *doing, const char *what)
{
    if (messages) fprintf(messages, "pfx: %s %s: %s (%d)\n", doing, what, pfx_error_name(status), (int)status);
    return status;
}

/* A text file with '\0' behind it, to be freed; NULL, with errno, where it cannot be read. */
static char *pfx_read(const char *path)
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
static void pfx_print_log(FILE *messages, cl_program built, cl_device_id device)
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

static cl_int pfx_build(pfx_program *program, cl_device_id device, const char *path)
{
    FILE *const messages = program->messages;
    cl_int status = CL_SUCCESS;
    char *const text = pfx_read(path);
    const char *source = text;
    int at;
    if (!text) {
        if (messages) fprintf(messages, "pfx: cannot read %s: %s\n", path, strerror(errno));
        return CL_INVALID_VALUE;
    }
    program->built = clCreateProgramWithSource(program->context, 1, &source, NULL, &status);
    free(text);
    if (status != CL_SUCCESS) return pfx_failed(messages, status, "making a program from", path);
    status = clBuildProgram(program->built, 1, &device, PFX_BUILD_OPTIONS, NULL, NULL);
    if (status != CL_SUCCESS) {
        pfx_print_log(messages, program->built, device);
        return pfx_failed(messages, status, "building", path);
    }
    for (at = 0; at < PFX_KERNELS; at++) {
        program->kernel[at] = clCreateKernel(program->built, pfx_kernels[at], &status);
        if (status != CL_SUCCESS) return pfx_failed(messages, status, "making the kernel", pfx_kernels[at]);
    }
    return CL_SUCCESS;
}

cl_int pfx_create(pfx_program **made, cl_context context, cl_device_id device, const char *path, FILE *messages)
{
    pfx_program *const program = (pfx_program *)calloc(1, sizeof *program);
    cl_int status;
    *made = NULL;
    if (!program) return CL_OUT_OF_HOST_MEMORY;
    program->messages = messages;
    status = clRetainContext(context);
    if (status != CL_SUCCESS) {
        free(program);
        return pfx_failed(messages, status, "taking", "the context");
    }
    program->context = context;
    status = pfx_build(program, device, path);
    if (status == CL_SUCCESS) *made = program;
    else pfx_release(program);
    return status;
}

void pfx_release(pfx_program *program)
{
    int at;
    if (!program) return;
    for (at = 0; at < PFX_SCRATCH; at++)
        if (program->scratch[at]) clReleaseMemObject(program->scratch[at]);
    for (at = 0; at < PFX_KERNELS; at++)
        if (program->kernel[at]) clReleaseKernel(program->kernel[at]);
    if (program->built) clReleaseProgram(program->built);
    clReleaseContext(program->context);
    free(program);
}
