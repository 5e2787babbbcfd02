package portcullis.client.driver

import java.io.File
import java.io.FileOutputStream
import java.io.IOException
import java.io.RandomAccessFile
import java.nio.channels.FileChannel
import java.nio.channels.FileLock
import java.nio.channels.OverlappingFileLockException
import java.nio.file.StandardOpenOption
import java.util.Properties
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock
import portcullis.client.PortcullisLimits
import portcullis.client.machine.EnrolmentRecord
import portcullis.client.machine.EnrolmentRecord.Phase

/**
 * The files of a record. All clients of a process that name one record share this.
 *
 * * The record itself is replaced whole, and is on disk before a change counts.
 * * `….lock` is locked while the record is changed or a number is given, against other processes of the app. Who can't
 *   have it in [PortcullisLimits.LOCK_WAIT] is told so, and signs nothing.
 * * `….number` has the last number that was given. It is not waited for on the disk: the record says up to where
 *   numbers are reserved, and after a restart of the phone counting goes on above that.
 * * `….alive` is locked by each process that has given a number, for all to share.
 * * `….enrolling` is locked while a process enrols. All these locks end with their process.
 */
internal class RecordFile private constructor(private val file: File) {
    private val mutex = ReentrantLock()
    private val lockFile: FileChannel by lazy { open(".lock") }
    // No channel: a thread that is interrupted would close it for all.
    private val numberFile by lazy { RandomAccessFile(file.path + ".number", "rw") }
    private val aliveFile: FileChannel by lazy { open(".alive") }
    /** Whether this process has given a number or looked at the last one. */
    private var hasCounted = false
    private val enrollingFile: FileChannel by lazy { open(".enrolling") }

    private fun open(ending: String): FileChannel = RandomAccessFile(file.path + ending, "rw").channel

    /** The record as it stands. */
    @Throws(IOException::class)
    fun read(gateway: String): EnrolmentRecord {
        val lines = Properties()
        // It is replaced whole, so that no half of it is read.
        if (file.exists()) file.inputStream().use { lines.load(it) }
        val texts = HashMap<String, String>()
        for (name in lines.stringPropertyNames()) texts[name] = lines.getProperty(name)
        return EnrolmentRecord.of(texts, gateway)
    }

    /** Changes the record; on disk when it returns. `null` changes nothing. */
    @Throws(IOException::class)
    fun change(gateway: String, body: (EnrolmentRecord) -> EnrolmentRecord?): EnrolmentRecord = locked {
        val before = read(gateway)
        val after = body(before)
        if (after != null && after != before) write(after)
        after ?: before
    }

    private fun write(record: EnrolmentRecord) {
        val lines = Properties()
        for ((name, text) in record.lines()) lines.setProperty(name, text)
        val other = File(file.path + ".new")
        FileOutputStream(other).use {
            lines.store(it, null)
            it.fd.sync()
        }
        if (!other.renameTo(file)) throw IOException("the record can't be replaced")
        val folder = file.absoluteFile.parentFile.toPath()
        FileChannel.open(folder, StandardOpenOption.READ).use { it.force(true) }
    }

    // Numbers.

    /**
     * The next number of a key, which no other process gives; `null` where it is no longer the key. Once in
     * [PortcullisLimits.NUMBERS_RESERVED] the disk is waited for.
     */
    @Throws(IOException::class)
    fun nextNumber(gateway: String, keyId: String): Long? = locked {
        val last = if (trustsNumber()) lastNumber(keyId) else null
        if (last != null && last.given < last.reserved) {
            giveNumber(keyId, last.given + 1, last.reserved)
        } else {
            reserve(gateway, keyId, last)
        }
    }

    private class Numbers(val given: Long, val reserved: Long)

    private fun reserve(gateway: String, keyId: String, last: Numbers?): Long? {
        val record = read(gateway)
        if ((record.phase as? Phase.Enrolled)?.keyId != keyId) return null
        // Without a word about the last one, all that were reserved may have been given.
        val number = (if (last != null) maxOf(last.given, record.numbers) else record.numbers) + 1
        // The gateway reads 32 bits.
        if (number > NUMBER_MAX) return null
        val reserved = minOf(number + PortcullisLimits.NUMBERS_RESERVED - 1, NUMBER_MAX)
        write(record.copy(numbers = reserved))
        return giveNumber(keyId, number, reserved)
    }

    /**
     * Whether the file has the last number. It is not forced to the disk, so that a phone that lost its power may have
     * an older one there. While another process is alive, the phone has not started since it was written.
     */
    private fun trustsNumber(): Boolean {
        if (hasCounted) return true
        hasCounted = true
        val alone = tryLock(aliveFile)
        alone?.release()
        // Never let go: it ends with the process.
        aliveFile.tryLock(0, Long.MAX_VALUE, true)
        return alone == null
    }

    /** What was given last of this key. */
    private fun lastNumber(keyId: String): Numbers? {
        val bytes = ByteArray(LINE_MAX)
        numberFile.seek(0)
        val count = numberFile.read(bytes)
        if (count <= 0) return null
        val words = String(bytes, 0, count, Charsets.US_ASCII).substringBefore('\n').split(' ')
        if (words.size != 3 || words[0] != keyId) return null
        val given = words[1].toLongOrNull() ?: return null
        return Numbers(given, words[2].toLongOrNull() ?: return null)
    }

    private fun giveNumber(keyId: String, number: Long, reserved: Long): Long {
        numberFile.seek(0)
        numberFile.write((keyId + " " + number + " " + reserved + "\n").toByteArray(Charsets.US_ASCII))
        return number
    }

    // Who enrols.

    /** Says that this process enrols, until it is let go; `null` while another one does, or another client here. */
    fun enrolling(): FileLock? = tryLock(enrollingFile)

    // The lock.

    private fun <T> locked(body: () -> T): T {
        try {
            val end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PortcullisLimits.LOCK_WAIT)
            if (!mutex.tryLock(PortcullisLimits.LOCK_WAIT, TimeUnit.MILLISECONDS)) throw IOException(KEPT)
            try {
                val lock = lock(end)
                try {
                    return body()
                } finally {
                    lock.release()
                }
            } finally {
                mutex.unlock()
            }
        } catch (error: InterruptedException) {
            Thread.currentThread().interrupt()
            throw IOException("the thread was interrupted")
        }
    }

    /** Without `lock`, whose channel an interrupted thread would close. */
    private fun lock(end: Long): FileLock {
        var pause = 1L
        while (true) {
            tryLock(lockFile)?.let { return it }
            if (System.nanoTime() >= end) throw IOException(KEPT)
            Thread.sleep(pause)
            pause = minOf(pause * 2, 20)
        }
    }

    private fun tryLock(channel: FileChannel): FileLock? =
        try {
            channel.tryLock()
        } catch (error: OverlappingFileLockException) {
            null
        }

    companion object {
        private const val NUMBER_MAX = 0xFFFF_FFFFL
        private const val LINE_MAX = 256
        private const val KEPT = "another process keeps the record"
        private val all = ConcurrentHashMap<String, RecordFile>()
        fun of(file: File): RecordFile = all.getOrPut(file.canonicalPath) { RecordFile(file) }
    }
}
