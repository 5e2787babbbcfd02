import CLinux
import ConfigurationReading
import EventLoops
import Glibc

/// The user of the process after root has started it.
struct ProcessUser {
    let name: String
    let uid: uid_t
    let gid: gid_t

    /// The user that a configuration names; `nil` when it names none, or the process already is
    /// that user.
    ///
    /// - Throws: when there is no such user or group, or when only root could change to it.
    init?(_ settings: ProcessSettings) throws(GatewayError) {
        guard let name = settings.user else { return nil }
        // The entries live until the next look-up, so the needed values are copied at once.
        guard let entry = getpwnam(name)?.pointee else {
            throw GatewayError(
                "process.user: there is no user \(name)",
                hint: "Make one: useradd --system --shell /usr/sbin/nologin \(name)"
            )
        }
        self.name = name
        uid = entry.pw_uid
        if let group = settings.group {
            guard let entry = getgrnam(group)?.pointee else {
                throw GatewayError(
                    "process.group: there is no group \(group)",
                    hint: "Make one: groupadd --system \(group)"
                )
            }
            gid = entry.gr_gid
        } else {
            gid = entry.pw_gid
        }
        guard uid != 0 else {
            throw GatewayError(
                "process.user: \(name) is root itself",
                hint: "Name a user that owns nothing but the store."
            )
        }
        guard geteuid() != uid else { return nil }
        guard geteuid() == 0 else {
            throw GatewayError(
                "process.user: only root can become \(name), and this is user \(geteuid())",
                hint: "Start it as root, or as \(name), or leave process.user out.",
                isAboutWhoStarts: true
            )
        }
    }

    /// Changes to the user, with its groups, permanently and in all threads.
    ///
    /// - Throws: when the system refuses, or would allow the process to become root again.
    func become() throws(GatewayError) {
        // Groups first: without root they can't be changed.
        guard initgroups(name, gid) == 0 else { throw failure("initgroups") }
        guard setgid(gid) == 0 else { throw failure("setgid") }
        guard setuid(uid) == 0 else { throw failure("setuid") }
        guard getuid() == uid, geteuid() == uid, getgid() == gid, getegid() == gid,
            setuid(0) != 0, seteuid(0) != 0, setgid(0) != 0 || gid == 0
        else {
            throw GatewayError(
                "process.user: as \(name) it could become root again",
                hint: "Start it without kept capabilities (capsh --print shows securebits)."
            )
        }
    }

    /// The text for logs: `portcullis (uid 64119, gid 64119)`.
    var text: String { "\(name) (uid \(uid), gid \(gid))" }

    private func failure(_ call: String) -> GatewayError {
        GatewayError(
            "process.user: can't become \(name): \(call): \(String(cString: strerror(errno)))",
            hint: "Root needs CAP_SETUID and CAP_SETGID for it; or start it as \(name)."
        )
    }
}

/// Whether the gateway can write a file or into a folder, checked without writing.
enum WriteAccess {
    case granted
    /// The text says what can't be written, and why.
    case refused(String)

    /// A file that exists or can be created. `makesOthers`: files are created beside it, too.
    ///
    /// - user: the user to which root changes before it writes; `nil` for the user of this process.
    init(toFile path: String, makesOthers: Bool = false, as user: ProcessUser?) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT != S_IFDIR else {
                self = .refused("\(path), which is a folder")
                return
            }
            self.init(path, mode: W_OK, as: user)
            guard makesOthers, case .granted = self else { return }
        }
        self.init(toFolder: WholeFile.folder(of: path), as: user)
    }

    /// A folder in which files are created.
    init(toFolder path: String, as user: ProcessUser?) {
        self.init(path.isEmpty ? "." : path, mode: W_OK | X_OK, as: user)
    }

    private init(_ path: String, mode: Int32, as user: ProcessUser?) {
        // With the effective user: access(2) uses the real one.
        let result =
            user.map { clinux_access_as($0.name, $0.uid, $0.gid, path, mode) }
            ?? faccessat(AT_FDCWD, path, mode, AT_EACCESS)
        guard result != 0 else {
            self = .granted
            return
        }
        let reason = String(cString: strerror(errno))
        self = .refused("\(path), which user \(user?.uid ?? geteuid()) can't write (\(reason))")
    }
}
