import Glibc

/// Sees that files of certificates have changed, by looking at them again and again.
///
/// inotify would miss what a file system of another machine or a container's mount changes, and the
/// links that Kubernetes swaps. A file that is gone, or can't be looked at, has not changed: what
/// was loaded stays in use.
struct CertificateWatch {
    /// What tells a file from what was there before.
    struct Stamp: Equatable, Sendable {
        private let device: UInt64
        private let inode: UInt64
        private let size: Int64
        private let modified: [Int64]

        /// `nil` when the file can't be looked at.
        init?(_ path: String) {
            var facts = stat()
            guard stat(path, &facts) == 0 else { return nil }
            device = UInt64(facts.st_dev)
            inode = UInt64(facts.st_ino)
            size = Int64(facts.st_size)
            let (content, entry) = (facts.st_mtim, facts.st_ctim)
            modified = [content.tv_sec, content.tv_nsec, entry.tv_sec, entry.tv_nsec].map {
                Int64($0)
            }
        }
    }

    typealias Stamps = [String: Stamp]

    /// How often the log says that a certificate ends soon.
    static let expiryWarningPace: Int64 = 86_400

    /// What was loaded last, or could not be.
    private var known: Stamps
    /// What has changed and did not stand still yet: certificate and key are written one after the
    /// other.
    private var changing: Stamps?
    /// How often files that had changed could not be used.
    private(set) var refusals: UInt64 = 0
    /// Why the files that are there can't be used; `nil` when they are in use.
    private(set) var fault: String?
    /// When the log last said that a certificate ends soon, seconds since 1970.
    var warnedAt: Int64

    /// - stamps: those of the files that were loaded at the start, when it also warns.
    init(_ stamps: Stamps, _ startedAt: Int64) {
        known = stamps
        warnedAt = startedAt
    }

    static func stamps(_ files: [String]) -> Stamps {
        files.reduce(into: [:]) { stamps, file in
            if let stamp = Stamp(file) { stamps[file] = stamp }
        }
    }

    /// What a start or a reload has loaded.
    mutating func loaded(_ stamps: Stamps) {
        known = stamps
        changing = nil
        fault = nil
    }

    /// Takes what was seen.
    ///
    /// - Returns: whether the files have changed, and have stood still since the last look.
    mutating func saw(_ stamps: Stamps) -> Bool {
        guard stamps.contains(where: { known[$0.key] != $0.value }) else {
            changing = nil
            return false
        }
        guard changing == stamps else {
            changing = stamps
            return false
        }
        changing = nil
        known = stamps
        return true
    }

    /// The changed files are in use.
    mutating func accepted() { fault = nil }

    /// The changed files can't be used.
    mutating func refused(_ why: String) {
        refusals += 1
        fault = why
    }
}
