/// Who attested a key. The raw value is the word in rules, logs and exports.
package enum KeyEnvironment: String, CaseIterable, Hashable, Sendable {
    case production
    case development
    /// An authority of the operator, for simulators, CI and the demonstration.
    case test

    /// The number that stands for it in a journal. Never renumber.
    package var number: UInt8 {
        switch self {
        case .production: 1
        case .development: 2
        case .test: 3
        }
    }

    /// The environment of a number; `nil` when there is none.
    package init?(number: UInt8) {
        guard let found = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = found
    }
}
