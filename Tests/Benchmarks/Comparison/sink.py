"""An origin that takes content, drops it, and answers with the number of octets it had.

    sink.py PORT
"""
import socket
import sys
import threading


def serve(connection):
    room = bytearray(1 << 20)
    held = b""
    while True:
        while b"\r\n\r\n" not in held:
            more = connection.recv(65536)
            if not more:
                return
            held += more
        head, _, held = held.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        count = min(len(held), length)
        held = held[count:]
        while count < length:
            # MSG_TRUNC on TCP: the kernel drops the bytes without a copy.
            got = connection.recv_into(room, min(len(room), length - count), socket.MSG_TRUNC)
            if got == 0:
                return
            count += got
        text = str(count).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))


def main():
    with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
