import Telemetry

/// The resources of the process, under the names that all programs use (prometheus.io, "Writing
/// client libraries").
package struct ProcessFacts: Sendable {
    package var cpuSeconds: Double
    package var residentBytes: UInt64
    package var virtualBytes: UInt64
    package var openDescriptors: Int
    package var descriptorsMax: UInt64
    package var threads: Int

    package init(
        cpuSeconds: Double,
        residentBytes: UInt64,
        virtualBytes: UInt64,
        openDescriptors: Int,
        descriptorsMax: UInt64,
        threads: Int
    ) {
        self.cpuSeconds = cpuSeconds
        self.residentBytes = residentBytes
        self.virtualBytes = virtualBytes
        self.openDescriptors = openDescriptors
        self.descriptorsMax = descriptorsMax
        self.threads = threads
    }

    /// - startedAtSeconds: Unix time.
    func write(startedAtSeconds: Int64, into out: inout Exposition) {
        func one(
            _ name: String,
            _ type: String,
            _ value: some CustomStringConvertible,
            _ help: String
        ) {
            out.family("process_" + name, type, help, [([], value)])
        }
        one("cpu_seconds_total", "counter", cpuSeconds, "User and system CPU time.")
        one("resident_memory_bytes", "gauge", residentBytes, "Memory that is resident.")
        one("virtual_memory_bytes", "gauge", virtualBytes, "Memory that is mapped.")
        one("open_fds", "gauge", openDescriptors, "Descriptors that are open.")
        one("max_fds", "gauge", descriptorsMax, "Descriptors that may be open.")
        one("threads", "gauge", threads, "Threads.")
        one("start_time_seconds", "gauge", startedAtSeconds, "When it started, Unix time.")
    }
}
