import Services
import Synchronization

/// Holds the token of a listener for the event loop that needs it; a reload replaces it.
final class OperatorTokenBox: OperatorTokenSource {
    private let token: Mutex<OperatorToken?>

    init(_ token: OperatorToken?) { self.token = Mutex(token) }

    var operatorToken: OperatorToken? { token.withLock { $0 } }

    func replace(by next: OperatorToken?) { token.withLock { $0 = next } }
}
