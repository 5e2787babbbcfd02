@testable import AppAttest

extension ObjectRefusal {
    /// The reason that an object is refused for; `nil` when the body accepts it.
    static func reason(_ body: () throws -> Void) -> Reason? {
        do {
            try body()
            return nil
        } catch let refusal as Self {
            return refusal.reason
        } catch {
            fatalError("not a refusal of this kind: \(error)")
        }
    }
}
