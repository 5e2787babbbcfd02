import KeyStore
import Rules

extension CounterRule {
    /// The rule as the store takes it.
    var store: StoreCounterRule {
        switch self {
        case .strict: .strict
        case .window(let width): .window(width)
        }
    }
}
