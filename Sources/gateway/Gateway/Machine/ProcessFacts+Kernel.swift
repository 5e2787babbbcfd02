import Glibc
import Services

extension ProcessFacts {
    /// The kernel's figures; `nil` without `/proc`.
    static var current: ProcessFacts? {
        var usage = rusage()
        var limit = rlimit()
        guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0,
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
            let pages = numbers("/proc/self/statm"), pages.count > 1,
            let descriptors = descriptorCount, let threads = count("/proc/self/task")
        else { return nil }
        let page = UInt64(max(sysconf(Int32(_SC_PAGESIZE)), 1))
        var facts = ProcessFacts()
        facts.cpuSeconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)
        facts.residentBytes = pages[1] &* page
        facts.virtualBytes = pages[0] &* page
        facts.openDescriptors = descriptors
        facts.descriptorsMax = UInt64(limit.rlim_cur)
        facts.threads = threads
        return facts
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000
    }

    /// The numbers of a file's first line.
    private static func numbers(_ path: String) -> [UInt64]? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
        return text.split { $0 == " " || $0 == "\n" }.compactMap { UInt64($0) }
    }

    /// Since Linux 6.2 the folder's size is their number (proc(5)). Before, its entries have to be
    /// read, which takes some milliseconds for ten thousand.
    private static var descriptorCount: Int? {
        var folder = stat()
        if stat("/proc/self/fd", &folder) == 0, folder.st_size > 0 { return Int(folder.st_size) }
        // The descriptor by which the folder is read is one of them.
        return count("/proc/self/fd").map { $0 - 1 }
    }

    /// The entries of a folder.
    private static func count(_ path: String) -> Int? {
        guard let folder = opendir(path) else { return nil }
        defer { closedir(folder) }
        var count = 0
        while let entry = readdir(folder) {
            // `.` and `..`
            if entry.pointee.d_name.0 != 0x2E { count += 1 }
        }
        return count
    }
}
