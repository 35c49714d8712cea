typedef struct {
    const char *name;
    void (*check)(int trial);
    double (*once)(int n);
    int n;
} pfx_tried;
