import KeyStore
import TestSupport

/// Why the body was refused.
func problem(_ body: () throws -> Void) throws -> StoreProblem {
    do {
        try body()
    } catch let problem as StoreProblem {
        return problem
    }
    throw StoreContract.Unexpected("nothing was refused")
}
