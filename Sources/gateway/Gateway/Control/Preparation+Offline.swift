package import ConfigurationReading
import EventLoops
import Glibc
import KeyStore
import Rules
package import SQLiteKeyStore

// `check --offline`: on a machine that lacks the gateway's secrets, such as one of continuous
// integration.
extension Preparation {
    /// Reads a file and checks what is there. What is absent is assumed and named: files, folders,
    /// variables, a user, a shared database, which is not asked.
    ///
    /// What depends on the gateway's own machine is not examined: rights to write, descriptors, the
    /// addresses of names.
    ///
    /// - age: the start's treatment of an older store.
    package static func loadOffline(
        _ file: String,
        age: StoreAge.Demand = .newest
    ) -> LoadedConfiguration {
        var loaded = ConfigurationLoader.load(file, offline: true)
        guard let configuration = loaded.configuration else { return loaded }
        var absent = AbsentThings(configuration, known: loaded.assumptions)
        absent.findUser()
        absent.findFolders()
        absent.findDatabase()
        var surroundings = TLSSurroundings()
        // Each of them is among the assumptions: its absence would have been an error.
        surroundings.assumed = Set(
            LoadedCertificates.files(of: configuration).filter { access($0, R_OK) != 0 }
        )
        let certificates = LoadedCertificates(configuration, surroundings)
        var problems = certificates.problems + noDatabaseProblems(configuration)
        if absent.findStore() { problems += storeProblems(configuration, age) }
        let kept = RolloutFile.kept(of: configuration)
        loaded.orders = kept.orders.orders(configuration.fileRules)
        problems += [kept.problem].compactMap(\.self) + loaded.orders.problems(configuration)
        return loaded.adding(problems).assuming(absent.all)
    }
}

/// What a configuration names beyond the files that its reading needs, and is not on this machine.
private struct AbsentThings {
    let configuration: GatewayConfiguration
    private(set) var all: [Assumption]

    init(_ configuration: GatewayConfiguration, known: [Assumption]) {
        (self.configuration, all) = (configuration, known)
    }

    private mutating func add(_ kind: Assumption.Kind, named name: String, _ keyPath: String) {
        // A variable, or a check of the reading, has named the key before.
        guard !all.contains(where: { $0.keyPath == keyPath }) else { return }
        let place = configuration.place(of: keyPath)
        all.append(Assumption(kind, named: name, at: place, keyPath))
    }

    mutating func findUser() {
        let process = configuration.process
        if let user = process.user, getpwnam(user) == nil {
            add(.user, named: user, "process.user")
        }
        if let group = process.group, getgrnam(group) == nil {
            add(.user, named: group, "process.group")
        }
    }

    /// The folders of sockets and of the access log.
    mutating func findFolders() {
        let listeners = configuration.listeners.enumerated().map { index, listener in
            ("listen[\(index)].address", listener.address)
        }
        let admin = configuration.admin.map { ("\($0.keyPath).address", $0.address) }
        for case (let keyPath, .unix(let path)) in listeners + admin {
            find(folderOf: path, keyPath)
        }
        if case .file(let path) = configuration.log.access { find(folderOf: path, "log.access") }
    }

    private mutating func find(folderOf path: String, _ keyPath: String) {
        let folder = WholeFile.folder(of: path)
        guard !Self.exists(folder) else { return }
        add(.folder, named: folder, keyPath)
    }

    mutating func findDatabase() {
        guard case .postgresql(let database) = configuration.store else { return }
        add(.database, named: database.address, "store.postgresql.address")
    }

    /// Whether the database's file can be examined.
    mutating func findStore() -> Bool {
        guard let file = configuration.store.file else { return false }
        guard !Self.exists(file) else { return true }
        if configuration.keeping.mustExist { add(.file, named: file, "store.sqlite") }
        return false
    }

    private static func exists(_ path: String) -> Bool {
        access(path.isEmpty ? "." : path, F_OK) == 0
    }
}
