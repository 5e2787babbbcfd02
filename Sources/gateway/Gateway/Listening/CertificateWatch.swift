import EventLoops
import Glibc

/// Detects changed certificate files by checking them periodically.
///
/// inotify would miss changes on a file system of another machine or a container's mount, and the
/// links that Kubernetes swaps. A file that is gone, or can't be checked, counts as unchanged: the
/// loaded one stays in use. Where it stays away it is a fault: a restart would fail.
struct CertificateWatch {
    /// The facts that distinguish a file from its predecessor.
    struct Stamp: Equatable, Sendable {
        private let device: UInt64
        private let inode: UInt64
        private let size: Int64
        private let modified: [Int64]

        /// `nil` when the file can't be checked.
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

    /// The interval of warnings that a certificate expires soon.
    static let expiryWarningPace: Int64 = 86_400
    /// The interval of warnings that a list of revoked certificates ends soon: one of a day is near
    /// its end for six hours.
    static let revocationWarningPace: Int64 = 21_600

    /// The files that were last loaded, or could not be.
    private var known: Stamps
    /// Files that have changed and may still change: certificate and key are written one after the
    /// other.
    private var changing: Stamps?
    /// Files that are gone, and the number of checks in a row that have missed the same ones.
    private var missing: (files: [String], checks: Int) = ([], 0)
    /// The checks after which missing files are a fault: a renewal may take one away and write it
    /// after a moment.
    static let missesMax = 3
    /// The number of times that changed files could not be used.
    private(set) var refusals: UInt64 = 0
    /// Why the current files can't be used; `nil` when they are in use.
    private(set) var fault: String?
    /// The time of the last warning that a certificate expires soon, seconds since 1970.
    var warnedAt: Int64
    /// The same of lists of revoked certificates.
    var warnedOfListsAt: Int64

    /// - stamps: those of the files that were loaded at the start, when it also warns.
    init(_ stamps: Stamps, _ startedAt: Int64) {
        known = stamps
        (warnedAt, warnedOfListsAt) = (startedAt, startedAt)
    }

    /// - files: a folder stands for itself and its files.
    static func stamps(_ files: [String]) -> Stamps {
        files.reduce(into: [:]) { stamps, file in
            for path in [file] + (RevocationFiles.paths(at: file) ?? []) {
                if let stamp = Stamp(path) { stamps[path] = stamp }
            }
        }
    }

    /// A start or a reload has loaded these files.
    mutating func loaded(_ stamps: Stamps) {
        known = stamps
        changing = nil
        missing = ([], 0)
        fault = nil
    }

    /// Takes the current stamps of files, before ``saw(_:)``. Files that are back end the fault
    /// that they were gone.
    ///
    /// - Returns: the files that were loaded and stay away, once.
    mutating func missed(_ stamps: Stamps, of files: [String]) -> [String] {
        let gone = files.filter { stamps[$0] == nil && known[$0] != nil }
        let isSame = gone == missing.files
        if !isSame, missing.checks >= Self.missesMax, gone.isEmpty { fault = nil }
        missing = (gone, isSame ? min(missing.checks + 1, Self.missesMax + 1) : 1)
        guard !gone.isEmpty, missing.checks == Self.missesMax else { return [] }
        return gone
    }

    /// Takes the current stamps.
    ///
    /// - Returns: whether the files have changed before the last check, and not since.
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
