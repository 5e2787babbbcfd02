/// An axis of a picture: from values to places.
struct Scale {
    let values: ClosedRange<Double>
    let places: ClosedRange<Double>
    let isLogarithmic: Bool

    /// `places` are from the value at the left or bottom to the other end; `isFlipped` turns them
    /// round, since y grows downwards in a picture.
    private let isFlipped: Bool

    init(
        _ values: ClosedRange<Double>,
        to places: ClosedRange<Double>,
        isLogarithmic: Bool = false,
        isFlipped: Bool = false
    ) {
        self.values = values
        self.places = places
        self.isLogarithmic = isLogarithmic
        self.isFlipped = isFlipped
    }

    /// The place of a value; those outside are moved to the end.
    func place(_ value: Double) -> Double {
        let value = min(max(value, values.lowerBound), values.upperBound)
        let width = measure(values.upperBound) - measure(values.lowerBound)
        let share = width > 0 ? (measure(value) - measure(values.lowerBound)) / width : 0
        let length = places.upperBound - places.lowerBound
        return isFlipped
            ? places.upperBound - share * length : places.lowerBound + share * length
    }

    private func measure(_ value: Double) -> Double {
        isLogarithmic ? Self.log10(max(value, 1e-9)) : value
    }

    /// Round values on the axis, about so many: 1, 2 and 5 times powers of ten.
    func ticks(about count: Int) -> [Double] {
        isLogarithmic ? logarithmicTicks(about: count) : evenTicks(about: count)
    }

    private func evenTicks(about count: Int) -> [Double] {
        let width = values.upperBound - values.lowerBound
        guard width > 0, width.isFinite else { return [values.lowerBound] }
        let rough = width / Double(max(count, 1))
        let power = Self.power(of: rough)
        let step = [1, 2, 5, 10].map { $0 * power }.first { $0 >= rough * 0.999 } ?? rough
        let first = (values.lowerBound / step).rounded(.up)
        let steps = Int(((values.upperBound / step) - first + 1e-9).rounded(.down))
        return (0...max(steps, 0)).map { (first + Double($0)) * step }
    }

    private func logarithmicTicks(about count: Int) -> [Double] {
        let decades = measure(values.upperBound) - measure(values.lowerBound)
        let factors: [Double] = decades * 3 <= Double(count) * 1.5 ? [1, 2, 5] : [1]
        var power = Self.power(of: values.lowerBound)
        var found: [Double] = []
        while power <= values.upperBound, found.count < 64 {
            found += factors.map { $0 * power }
            power *= 10
        }
        return found.filter { $0 >= values.lowerBound * 0.999 && $0 <= values.upperBound * 1.001 }
    }

    /// The power of ten at or below a positive number.
    static func power(of value: Double) -> Double {
        var power = 1.0
        guard value > 0, value.isFinite else { return power }
        while power * 10 <= value { power *= 10 }
        while power > value { power /= 10 }
        return power
    }

    /// The common logarithm, by exponent and a series for the rest, so that this part of the
    /// program needs no library for a picture.
    static func log10(_ value: Double) -> Double {
        guard value > 0, value.isFinite else { return -9 }
        // value = significand · 2^exponent; ln((1+z)/(1−z)) = 2 (z + z³/3 + z⁵/5 + …).
        let significand = value.significand
        let z = (significand - 1) / (significand + 1)
        var term = z
        var sum = 0.0
        for place in 0..<24 {
            sum += term / Double(2 * place + 1)
            term *= z * z
        }
        let natural = 2 * sum + Double(value.exponent) * 0.693_147_180_559_945_3
        return natural / 2.302_585_092_994_046
    }
}
