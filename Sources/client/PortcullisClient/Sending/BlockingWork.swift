import Dispatch

/// Runs what blocks, such as reading a file, on a thread of its own: the threads that Swift's tasks
/// share must not block. One step at a time, in order; a cancelled task begins no further step.
struct BlockingWork: Sendable {
    // The pool of each step is drained with it: Foundation's buffers would pile up else.
    private let queue = DispatchQueue(
        label: "portcullis.client.blocking",
        autoreleaseFrequency: .workItem
    )

    func step<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws
        -> Result
    {
        try Task.checkCancellation()
        return try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result(catching: body)) }
        }
    }
}
