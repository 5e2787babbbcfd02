import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What an exchange asks of its task.
protocol TransportTask: Sendable {
    /// Whether it can be suspended on its way, and go on where it was.
    var canPause: Bool { get }

    func resume()
    func suspend()
    func cancel()
}

extension URLSessionTask: TransportTask {
    /// Not on Linux. There, a task that is suspended leaves its connection, and sends its request
    /// again when it is resumed: the server serves it twice, and its content comes from the start
    /// once more (swift-corelibs-foundation, `_NativeProtocol.suspend()`).
    var canPause: Bool {
        #if canImport(FoundationNetworking)
            false
        #else
            true
        #endif
    }
}
