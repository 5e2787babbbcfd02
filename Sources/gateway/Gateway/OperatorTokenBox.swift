import Services
import Synchronization

/// Holds the token of operators, which a reload replaces, for the event loop that asks for it.
final class OperatorTokenBox: OperatorTokenSource {
    private let token = Mutex<OperatorToken?>(nil)

    var operatorToken: OperatorToken? { token.withLock { $0 } }

    func replace(by next: OperatorToken?) { token.withLock { $0 = next } }
}
