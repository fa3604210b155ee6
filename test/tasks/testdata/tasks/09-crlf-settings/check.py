from taskcheck import data, need, start

want = start("settings.ini").replace(b"host = 0.0.0.0\r\nport = 8080\r\n", b"host = 0.0.0.0\r\nport = 9090\r\nretries = 3\r\n")
have = data("settings.ini")
need(b"\n" not in have.replace(b"\r\n", b""), "settings.ini has lines that do not end with CR LF")
need(have == want, "settings.ini is not the old file with these two lines")
