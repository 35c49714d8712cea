// A plate of temperatures, and the header's plain C functions behind a C++ face.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "heat.h"

class Plate {
public:
    Plate(std::int64_t height, std::int64_t width)
        : height_(height), width_(width), now_(cells()), later_(cells()) {}

    double &at(std::int64_t row, std::int64_t column) { return now_[static_cast<std::size_t>(row * width_ + column)]; }

    // The flow per step is c times the difference between neighbours; the rim keeps its temperature.
    void run(std::int64_t steps, double c, std::int32_t threads)
    {
        later_ = now_;
        const heat_status status =
            heat(height_, width_, steps / 2, c, now_.data(), width_, later_.data(), width_, threads);
        if (status != HEAT_OK)
            throw std::invalid_argument(heat_status_text(status));
    }

private:
    std::size_t cells() const { return static_cast<std::size_t>(height_ * width_); }

    std::int64_t height_, width_;
    std::vector<double> now_, later_;
};
