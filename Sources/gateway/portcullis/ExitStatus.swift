import Glibc

/// The exit statuses of all commands. A command throws one, or ends with it; what each means for a
/// command is in ``meanings``.
enum ExitStatus: Int32, CaseIterable, Error {
    /// Yes: it was done, it is right, all of it was printed.
    case yes = 0
    /// No: a refusal, an invalid file, something that can't be reached, output that is incomplete.
    case no = 1
    /// Wrong usage: words that the command does not take, or a file that it can't read.
    case usage = 2

    init(isYes: Bool) { self = isYes ? .yes : .no }

    /// Ends the process.
    func end() -> Never { Glibc.exit(rawValue) }

    /// Returns for 0, and throws others.
    func finish() throws { if self != .yes { throw self } }

    /// What a command's statuses say.
    struct Meaning {
        let command: String
        let yes: String
        let no: String
        /// In addition to words that the command does not take.
        var usage = ""
    }

    private static let printed = "all of it is printed"
    private static let unread = "the file is invalid, or the output incomplete"
    private static let unreached = "no gateway answers, or it refuses"

    /// One for each command. `portcullis reference exits` prints them, and a test looks for each.
    static let meanings: [Meaning] =
        [
            .init(
                command: "serve",
                yes: "it ended as it was asked to, or handed over",
                no: "it can't start, or its store could not be closed"
            ),
            .init(
                command: "check",
                yes: "the configuration can be served; warnings don't change it",
                no: "it can't be served"
            ),
            .init(command: "diff", yes: "both are valid, whether or not they differ", no: unread),
            .init(command: "explain", yes: printed, no: unread),
            .init(
                command: "test",
                yes: "all cases pass",
                no: "a case fails, or the configuration is invalid",
                usage: "the cases can't be read"
            ),
            .init(command: "plan", yes: "the plan is written", no: unread),
            .init(
                command: "init",
                yes: "the files are written",
                no: "a file is there, or `check` would refuse what was asked for"
            ),
            .init(
                command: "doctor",
                yes: "nothing is wrong; warnings don't change it",
                no: "something is wrong"
            ),
            .init(command: "schema", yes: printed, no: "the output is incomplete"),
            .init(command: "keys list", yes: printed, no: "no store, or the output is incomplete"),
            .init(
                command: "keys show",
                yes: printed,
                no: "the key is not stored, or there is no store"
            ),
            .init(
                command: "keys import",
                yes: "all lines are taken over",
                no: "nothing is, or with --skip-problems some are not"
            ),
            .init(
                command: "keys export",
                yes: printed,
                no: "no store, or the output is incomplete"
            ),
            .init(
                command: "keys revoke",
                yes: "all keys are revoked",
                no: "one of them is not stored"
            ),
            .init(
                command: "keys restore",
                yes: "no key is revoked",
                no: "one of them is not stored"
            ),
            .init(
                command: "keys delete",
                yes: "all keys are deleted",
                no: "one of them is not stored"
            ),
            .init(
                command: "keys history",
                yes: printed,
                no: "no store, or the output is incomplete"
            ),
            .init(command: "receipts status", yes: printed, no: "no store, or no output"),
            .init(
                command: "receipts renew",
                yes: "all are asked for",
                no: "one of the keys has none, or one that is too new"
            ),
            .init(command: "store backup", yes: "the copy is written", no: "it is not"),
            .init(command: "store check", yes: "nothing is wrong", no: "something is wrong"),
            .init(
                command: "store restore",
                yes: "the backup is in place",
                no: "nothing has changed"
            ),
            .init(command: "store migrate", yes: "the tables are there", no: "they are not"),
            .init(
                command: "store copy",
                yes: "all keys are copied",
                no: "some are not, or a store can't be read"
            ),
            .init(command: "origins list", yes: printed, no: unreached),
            .init(command: "origins drain", yes: "the server gets no new requests", no: unreached),
            .init(command: "origins undrain", yes: "the server gets requests", no: unreached),
            .init(
                command: "fleet status",
                yes: "all gateways are heard of",
                no: "one is silent, or the database does not answer"
            ),
            .init(
                command: "fleet drain",
                yes: "it has no connections",
                no: "it still has some, or the database does not answer"
            ),
            .init(command: "fleet resume", yes: "it serves again", no: "it has not said so"),
            .init(
                command: "fleet upgrade",
                yes: "all serve again",
                no: "one does not; it stays drained"
            ),
            .init(command: "report", yes: printed, no: unreached),
            .init(
                command: "rollout",
                yes: "the order is given, or all of it is printed",
                no: "not confirmed or refused, so that nothing has changed; or no gateway answers, "
                    + "and the message says whether the order may hold"
            ),
            .init(
                command: "upgrade",
                yes: "another process serves",
                no: "refused, so that nothing has changed; or no answer, and the log says more"
            ),
            .init(
                command: "why",
                yes: printed,
                no: "no refusal of this name, or no gateway answers"
            ),
        ]
        + ["attestation", "assertion", "receipt", "android"].map { kind in
            Meaning(
                command: "verify \(kind)",
                yes: "it is accepted",
                no: "it is refused",
                usage: "a file can't be read"
            )
        } + [
            .init(
                command: "inspect",
                yes: "it is described",
                no: "it is malformed",
                usage: "the file can't be read"
            )
        ]

    /// The rows of the table: a command, then what each status says.
    static func rows(of commands: [String]) -> [[String]] {
        commands.map { command in
            let meaning = meanings.first { $0.command == command }
            let more = meaning?.usage ?? ""
            let usage = more.isEmpty ? "wrong usage" : "wrong usage, or \(more)"
            return [command, meaning?.yes ?? "", meaning?.no ?? "", usage]
        }
    }
}
