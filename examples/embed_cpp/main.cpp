// One hot edge warms a plate, the same by every instruction set that this CPU has.
#include <algorithm>
#include <cmath>
#include <exception>
#include <iostream>

#include "plate.hpp"

namespace {

double centre_after(std::int64_t steps)
{
    const std::int64_t height = 65, width = 97;
    Plate plate(height, width);
    for (std::int64_t column = 0; column < width; column++)
        plate.at(0, column) = 100;
    plate.run(steps, 0.2, 2);
    return plate.at(height / 2, width / 2);
}

}  // namespace

int main()
try {
    std::cout << "a call takes the kernels for ISA number " << heat_isa_in_use() << '\n';
    const double warm = centre_after(2000);
    std::cout << "the centre is at " << warm << " degrees\n";

    // Choosing an instruction set is optional. It serves to compare them, or to get the same results on all machines.
    double apart = 0;
    for (const heat_isa isa : {HEAT_ISA_PORTABLE, HEAT_ISA_NEON, HEAT_ISA_AVX2, HEAT_ISA_AVX512})
        if (heat_force_isa(isa) == HEAT_OK)
            apart = std::max(apart, std::abs(centre_after(2000) - warm));
    heat_force_isa(HEAT_ISA_AUTO);
    std::cout << "the instruction sets agree to " << (apart < 1e-9 ? "nine digits" : "fewer digits than they should") << '\n';

    // A mistake becomes an exception, and the plate stays as it was.
    try {
        Plate(10, 10).run(4, 0.2, 0);
    } catch (const std::invalid_argument &mistake) {
        std::cout << "refused: " << mistake.what() << '\n';
    }
    return warm > 1 && apart < 1e-9 ? 0 : 1;
} catch (const std::exception &mistake) {
    std::cerr << mistake.what() << '\n';
    return 1;
}
