package oci

// These types are the part of the OCI runtime specification's config.json that
// launches need.

type config struct {
	Version  string  `json:"ociVersion"`
	Process  process `json:"process"`
	Root     root    `json:"root"`
	Hostname string  `json:"hostname"`
	Mounts   []mount `json:"mounts"`
	Linux    linux   `json:"linux"`
}

type process struct {
	Terminal        bool         `json:"terminal"`
	User            user         `json:"user"`
	Args            []string     `json:"args"`
	Env             []string     `json:"env"`
	Dir             string       `json:"cwd"`
	Capabilities    capabilities `json:"capabilities"`
	Limits          []limit      `json:"rlimits"`
	NoNewPrivileges bool         `json:"noNewPrivileges"`
}

type user struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// capabilities are none.
type capabilities struct {
	Bounding    []string `json:"bounding"`
	Effective   []string `json:"effective"`
	Inheritable []string `json:"inheritable"`
	Permitted   []string `json:"permitted"`
	Ambient     []string `json:"ambient"`
}

type limit struct {
	Type string `json:"type"`
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

type root struct {
	Path     string `json:"path"`
	ReadOnly bool   `json:"readonly"`
}

type mount struct {
	Destination string    `json:"destination"`
	Type        string    `json:"type"`
	Source      string    `json:"source"`
	Options     []string  `json:"options"`
	UIDs        []mapping `json:"uidMappings,omitempty"`
	GIDs        []mapping `json:"gidMappings,omitempty"`
}

type mapping struct {
	Inside  uint32 `json:"containerID"`
	Outside uint32 `json:"hostID"`
	Size    uint32 `json:"size"`
}

type linux struct {
	Namespaces  []namespace `json:"namespaces"`
	UIDs        []mapping   `json:"uidMappings,omitempty"`
	GIDs        []mapping   `json:"gidMappings,omitempty"`
	CgroupsPath string      `json:"cgroupsPath,omitempty"`
	Resources   *resources  `json:"resources,omitempty"`
	Seccomp     *filter     `json:"seccomp,omitempty"`
	Propagation string      `json:"rootfsPropagation"`
	Masked      []string    `json:"maskedPaths"`
	ReadOnly    []string    `json:"readonlyPaths"`
}

type namespace struct {
	Type string `json:"type"`
}

type resources struct {
	Memory *memory `json:"memory,omitempty"`
	Pids   *pids   `json:"pids,omitempty"`
}

type memory struct {
	Limit int64 `json:"limit"`
	Swap  int64 `json:"swap"`
}

type pids struct {
	Limit int64 `json:"limit"`
}

// filter is a filter of system calls.
type filter struct {
	Default       string   `json:"defaultAction"`
	Architectures []string `json:"architectures"`
	Calls         []rule   `json:"syscalls"`
}

type rule struct {
	Names  []string    `json:"names"`
	Action string      `json:"action"`
	Errno  uint        `json:"errnoRet"`
	Args   []condition `json:"args,omitempty"`
}

type condition struct {
	Index uint   `json:"index"`
	Value uint64 `json:"value"`
	Two   uint64 `json:"valueTwo,omitempty"`
	Op    string `json:"op"`
}
