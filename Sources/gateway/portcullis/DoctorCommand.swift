import ArgumentParser
import Dispatch
import Gateway
import Glibc
import JSONText

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Look for what commonly goes wrong around a gateway.",
        discussion: """
            Clock, descriptors, addresses, certificates, disk and origins, as they are on this \
            machine and for this user. It binds addresses for a moment, writes and deletes a file \
            beside the store, and sends each server of an origin one request: that of its check, \
            or HEAD /. Exit status 1 when something is wrong; warnings don't change it.
            """
    )

    @Argument(help: "The configuration file.")
    var file: String

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func run() throws {
        let printsJSON = json
        Doctor.examine(file) { report in
            StandardOutput.write(printsJSON ? report.json.pretty + "\n" : report.text)
            Glibc.exit(report.exitStatus)
        }
        dispatchMain()
    }
}
