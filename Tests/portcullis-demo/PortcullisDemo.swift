import ArgumentParser
import Cryptography

// The gateway in one process: an origin, the gateway with its store and its admin listener, and
// devices made of software, on ports that the system chooses.
//
//   PortcullisDemo   the command: options, exit status
//   Stage            what the steps share; raises the parts in order and takes them down
//   Step             one step of the story; each is a file in Steps/
//   Narrator         what is printed, and the count of claims
//   Origin           a small server that records what it saw, complete or aborted
//   Sighting         one request as the origin saw it
//   Phone            the app's side: a software key that asks for challenges and signs requests
//   PackagedApp      another app's side: the client package, on a device that counts
//   CountedService   a device that counts what Apple would count
//   Call, Answer     a request as it is sent, and what came back
//   DemoFolder       the temporary folder with configuration, store, log and test root
//
// Every line with a tick is a claim that was checked in this run. If one fails, the exit status is
// 1. The sockets are those of the tests' kit. No part of this is linked into `portcullis`.

@main
struct PortcullisDemo: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "portcullis-demo",
        abstract: "See the gateway at work: an origin, the gateway and devices made of software.",
        discussion: """
            Takes a few seconds, needs no network but the loopback interface, and leaves nothing \
            behind. Exits 0 when every claim held, 1 when one did not.
            """
    )

    @Flag(help: "Leave the temporary folder and say where it is.")
    var keep = false

    @Flag(help: "Go on serving after the story, with curl lines to try; ends with Control-C.")
    var serve = false

    @Flag(help: "Print nothing but claims that failed, and the last line.")
    var quiet = false

    func run() throws {
        OpenSSLCleanup.leaveToSystem()
        let narrator = Narrator(isQuiet: quiet)
        do {
            let stage = try Stage(narrator, keepsFolder: keep)
            try stage.play(Story.steps)
            if serve { try stage.serveOn() }
            try stage.end()
        } catch {
            narrator.fail("the story broke off: \(error)")
        }
        narrator.finish()
        if !narrator.isGood { throw ExitCode(1) }
    }
}

/// Why the story can't go on.
struct StoryFault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
