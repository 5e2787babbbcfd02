import Foundation
import FuzzTargets

// libFuzzer's entries. The environment chooses what it does, as the options are libFuzzer's:
//
//   PORTCULLIS_FUZZ_TARGET=cbor      fuzz this target
//   PORTCULLIS_FUZZ_TARGET=list      print the names of the targets
//   PORTCULLIS_FUZZ_TARGET=seeds     write objects of the made-up device to the folder ahead
//   PORTCULLIS_FUZZ_TARGET=reading   tell in JSON how messages are read that come on the input

private let mode = ProcessInfo.processInfo.environment["PORTCULLIS_FUZZ_TARGET"] ?? ""
private let target = FuzzTarget(rawValue: mode)

/// The entry of a build in which this program alone is instrumented. SwiftPM gives every program's
/// `main` its module's name, except where the whole build is instrumented (`--sanitize=fuzzer`);
/// there it is libFuzzer's own.
@_cdecl("FuzzProgram_main")
public func main(
    _ count: CInt,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> CInt {
    var count = count
    var arguments = arguments
    return runLibFuzzer(&count, &arguments, test)
}

// https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library
@_silgen_name("LLVMFuzzerRunDriver")
private func runLibFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// Called once, before the first input.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>>>
) -> CInt {
    switch mode {
    case "list":
        for target in FuzzTarget.allCases { print(target.rawValue) }
        exit(0)
    case "seeds":
        guard count.pointee == 2 else { fail("which folder?") }
        writeSeeds(to: URL(filePath: String(cString: arguments.pointee[1])))
        exit(0)
    case "reading":
        MessageReading.run()
        exit(0)
    default:
        if target == nil { fail("set PORTCULLIS_FUZZ_TARGET to one of the targets, or to list") }
        return 0
    }
}

/// Called for each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // libFuzzer lends the bytes for this call, in which they are copied.
    target?.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}

private func writeSeeds(to folder: URL) {
    for (index, seed) in SeedObjects.make().enumerated() {
        let place = folder.appending(path: seed.target.rawValue)
        do {
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            try Data(seed.bytes).write(to: place.appending(path: "made-\(index)"))
        } catch {
            fail("\(error)")
        }
    }
}

private func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data("fuzz: \(message)\n".utf8))
    exit(2)
}
