/* The smaller and the greater of two vectors as Python chooses, and magnitudes, for instruction sets whose layer has none. */
typedef int_of_T chosen_T __attribute__((vector_size(sizeof(vec_T))));

INLINE vec_T choose_T(chosen_T test, vec_T a, vec_T b) { return (vec_T)(((chosen_T)a & test) | ((chosen_T)b & ~test)); }
INLINE vec_T min_T(vec_T a, vec_T b) { return choose_T((chosen_T)(b < a), b, a); }
INLINE vec_T max_T(vec_T a, vec_T b) { return choose_T((chosen_T)(b > a), b, a); }
INLINE vec_T abs_T(vec_T x) { return (vec_T)((chosen_T)x & ~(chosen_T)broadcast_T((T)-0.0)); }
