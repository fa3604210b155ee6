package seatbelt

// The parts of a profile that are the same for all launches. What each stands for
// was gathered from published profiles; what a part is needed for is said in it.

// processRules are about processes. Those outside are neither seen nor signalled.
const processRules = `
; Processes.
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow mach-priv-task-port (target same-sandbox))
(allow sysctl-read
  (sysctl-name-prefix "hw.")
  (sysctl-name-prefix "machdep.cpu.")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.boottime")
  (sysctl-name "kern.clockrate")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg")
  (sysctl-name "vm.pagesize"))

; The number of processors is asked of the kernel's host port.
(allow mach-host*)

; Services of the system that every program asks: names of users, the log,
; notifications, its temporary directory.
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.logd")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))

; A program of many processes, such as a browser, registers a name that ends in its
; number and finds it again.
(allow mach-register (global-name-regex #"[.][0-9]+$"))
(allow mach-lookup
  (global-name-regex #"^(org[.]chromium[.]Chromium|com[.]google[.]Chrome)[.A-Za-z]*[.]MachPortRendezvousServer[.][0-9]+$"))

; Without the second one the window of a browser is transparent.
(allow iokit-open
  (iokit-registry-entry-class "RootDomainUserClient")
  (iokit-registry-entry-class "IOSurfaceRootUserClient"))

; Semaphores and memory that processes share by a name; those of the system can only
; be read.
(allow ipc-posix-sem)
(allow ipc-posix-shm-read* ipc-posix-shm-write*)
(deny ipc-posix-shm-write*
  (ipc-posix-name-prefix "apple.")
  (ipc-posix-name-prefix "com.apple."))

(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))
`

// systemRules are what of the system can be read. Home directories are not among
// it, by whatever way they are reached.
const systemRules = `
; The system.
(allow file-read* (literal "/"))
(allow file-read* file-map-executable
  (subpath "/Applications")
  (subpath "/Library")
  (subpath "/System")
  (subpath "/bin")
  (subpath "/opt")
  (subpath "/private/etc")
  (subpath "/private/var/db/dyld")
  (subpath "/private/var/db/timezone")
  (subpath "/private/var/select")
  (subpath "/sbin")
  (subpath "/usr"))
(allow file-read-metadata
  (literal "/etc")
  (literal "/private")
  (literal "/private/var")
  (literal "/private/var/db")
  (literal "/tmp")
  (literal "/var"))

; The same disk again, with the homes on it.
(deny file-read* file-map-executable (subpath "/System/Volumes/Data"))

; Only root may read these anyway; the host may be root.
(deny file-read*
  (literal "/private/etc/master.passwd")
  (literal "/private/etc/sudoers")
  (subpath "/private/etc/sudoers.d")
  (regex #"^/private/etc/ssh/ssh_host_[a-z0-9]+_key$")
  (subpath "/Library/Keychains"))

; Devices. There is no terminal: its owner reads along there.
(allow file-read* (literal "/dev") (subpath "/dev/fd"))
(allow file-read* file-write-data
  (literal "/dev/dtracehelper")
  (literal "/dev/null")
  (literal "/dev/random")
  (literal "/dev/urandom")
  (literal "/dev/zero"))
(allow file-read* file-write-data
  (literal "/dev/stdin")
  (literal "/dev/stdout")
  (literal "/dev/stderr"))
(allow file-ioctl (literal "/dev/dtracehelper"))
`

// finalRules hold whatever a launch is granted.
const finalRules = `
; Never: programs that run as somebody else, and what launchd keeps for the user's
; other programs.
(deny file-write-setugid)
(deny file-read* file-write* (regex #"^/private/tmp/com[.]apple[.]launchd"))
`

// socketRules keep the sockets of the user's other programs out of reach: the
// agent of his keys is one.
const socketRules = `(deny network-outbound (remote unix-socket (path-regex #"^/private/tmp/com[.]apple[.]launchd")))
`

// openRules open the network of the host. Sockets in directories stay as they are,
// but for the one that resolves names.
const openRules = `
; The network of the host.
(allow network-outbound (remote ip "*:*"))
(allow network-bind network-inbound (local ip "*:*"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow file-read* (literal "/private/var/run/resolv.conf"))
(allow system-socket (socket-domain AF_ROUTE))
(allow mach-lookup (global-name "com.apple.networkd"))
`

// trustRules let programs make internet sockets and ask whether to trust a
// certificate.
const trustRules = `(allow system-socket (socket-domain AF_INET) (socket-domain AF_INET6))
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
`
