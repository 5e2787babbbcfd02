/// Why the store can't be used, for the operator: what, and what to do about it.
package struct StoreProblem: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: String, Hashable, Sendable {
        /// There is no database.
        case missing
        /// Another gateway uses it.
        case locked
        /// It can't be read as a database, or its check fails.
        case damaged
        /// It is a database of another program.
        case foreign
        /// Its tables are of another version of Portcullis.
        case otherVersion
        /// It is a part of a database.
        case incomplete
        /// A file exists in the place of a new one.
        case occupied
        /// There is no room on the disk.
        case full
        /// Files can't be made, read or written.
        case unusable
        /// Another process holds the write lock for too long.
        case busy
        /// The change is stored, but a running gateway has not confirmed it.
        case gatewayNotTold
        /// The files are not those that a running gateway has open.
        case replaced
        /// The database is older than the one that was used here, or it is gone.
        case older
        /// The log of transactions belongs to another database.
        case mispaired
    }

    package let reason: Reason
    package let path: String
    /// The fault that was found.
    package let detail: String
    /// The next step, where the store knows more than ``reason`` says.
    private let next: String?

    /// - next: the next step, where it is not the usual one of the reason.
    package init(_ reason: Reason, at path: String, _ detail: String, next: String? = nil) {
        self.reason = reason
        self.path = path
        self.detail = detail
        self.next = next
    }

    /// The operator's view of a journal's fault, for the file at this path.
    package init(_ error: JournalError, _ path: String) {
        self.path = path
        detail = error.detail
        next = error.next
        reason =
            switch error.reason {
            case .busy: .busy
            case .full: .full
            case .unusable, .closed: .unusable
            case .damaged: .damaged
            case .replaced: .replaced
            }
    }

    package var hint: String { next ?? usualHint }

    private var usualHint: String {
        switch reason {
        case .missing: "give the path of the gateway's database, or import keys to make one"
        case .locked: "stop the other gateway, or give this one a database of its own"
        case .damaged:
            "see in the kernel's log whether the disk fails; if it does not, stop what uses the "
                + "file, restore the last backup: portcullis store restore FILE, which keeps what "
                + "is there; of a keys export: move the file aside with its -wal and -shm, keys "
                + "import, then serve --accept-older-store; devices whose key is not in it enrol "
                + "again"
        case .foreign: "give the path of another file"
        case .incomplete:
            "start no gateway on it, which would make an empty store of it; make copies with "
                + "portcullis store backup"
        case .occupied: "name another file, or move that one away"
        case .otherVersion: "use the portcullis that wrote it, or a later one"
        case .full: "make room on the disk of the store"
        case .unusable: "make the folder and its files writable for this user"
        case .busy: "try again; another command or a backup is writing (fuser FILE names it)"
        case .gatewayNotTold: "look at the gateway's log and restart it; it reads all at its start"
        case .replaced:
            "move the files that the gateway has open back, or, to use those that are there now, "
                + "restart the gateway and do this again"
        case .older:
            "put the newest copy back, or, where a gateway runs that has the files open, move "
                + "those back, so that nothing is lost; to go on with this one, start once with "
                + "--accept-older-store: what was stored since is lost, so keys revoked since "
                + "pass, and devices enrolled since enrol again; so that nothing is replayed, a "
                + "key is good again only with a challenge, and a rule without one has it "
                + "enrolled anew"
        case .mispaired:
            "move it and the -shm beside it away, or put the database back that it belongs to"
        }
    }

    package var description: String { "\(path): \(detail); \(hint)" }
}
