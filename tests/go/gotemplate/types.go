package main

// The shapes that templates see under .Hardware, and the workflow document, as the reference lists them.

type legacyHardware struct {
	Disks      []string
	Interfaces []networkInterface
	UserData   string
	Metadata   metadata
	VendorData string
}

type hardwareSpec struct {
	AgentID     string                `json:"agentID,omitempty"`
	Auto        auto                  `json:"auto,omitempty"`
	BMCRef      *typedReference       `json:"bmcRef,omitempty"`
	Interfaces  []networkInterface    `json:"interfaces,omitempty"`
	References  map[string]objectName `json:"references,omitempty"`
	Metadata    *metadata             `json:"metadata,omitempty"`
	TinkVersion int64                 `json:"tinkVersion,omitempty"`
	Disks       []deviceName          `json:"disks,omitempty"`
	Resources   map[string]string     `json:"resources,omitempty"`
	UserData    *string               `json:"userData,omitempty"`
	VendorData  *string               `json:"vendorData,omitempty"`
}

type auto struct {
	EnrollmentEnabled bool `json:"enrollmentEnabled,omitempty"`
}

type typedReference struct {
	APIGroup *string `json:"apiGroup"`
	Kind     string  `json:"kind"`
	Name     string  `json:"name"`
}

type objectName struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Resource  string `json:"resource,omitempty"`
}

type deviceName struct {
	Device string `json:"device,omitempty"`
}

type networkInterface struct {
	Netboot     *netboot `json:"netboot,omitempty"`
	Isoboot     *isoboot `json:"isoboot,omitempty"`
	DHCP        *dhcp    `json:"dhcp,omitempty"`
	DisableDHCP bool     `json:"disableDhcp,omitempty"`
}

type netboot struct {
	AllowPXE      *bool     `json:"allowPXE,omitempty"`
	AllowWorkflow *bool     `json:"allowWorkflow,omitempty"`
	IPXE          *ipxe     `json:"ipxe,omitempty"`
	OSIE          *osie     `json:"osie,omitempty"`
	PXELINUX      *pxelinux `json:"pxelinux,omitempty"`
	RPI           *rpi      `json:"rpi,omitempty"`
}

type isoboot struct {
	SourceISO string `json:"sourceISO,omitempty"`
}

type ipxe struct {
	URL      string `json:"url,omitempty"`
	Contents string `json:"contents,omitempty"`
	Binary   string `json:"binary,omitempty"`
}

type osie struct {
	BaseURL      string   `json:"baseURL,omitempty"`
	Kernel       string   `json:"kernel,omitempty"`
	Initrd       string   `json:"initrd,omitempty"`
	KernelParams []string `json:"kernelParams,omitempty"`
}

type pxelinux struct {
	Config string `json:"config,omitempty"`
}

type rpi struct {
	ConfigTxt    string `json:"configTxt,omitempty"`
	FirmwarePath string `json:"firmwarePath,omitempty"`
	SerialNum    string `json:"serialNum"`
}

type dhcp struct {
	MAC                   string   `json:"mac,omitempty"`
	Hostname              string   `json:"hostname,omitempty"`
	DomainName            string   `json:"domain_name,omitempty"`
	LeaseTime             int64    `json:"lease_time,omitempty"`
	NameServers           []string `json:"name_servers,omitempty"`
	TimeServers           []string `json:"time_servers,omitempty"`
	Arch                  string   `json:"arch,omitempty"`
	UEFI                  bool     `json:"uefi,omitempty"`
	IfaceName             string   `json:"iface_name,omitempty"`
	IP                    *ip      `json:"ip,omitempty"`
	VLANID                string   `json:"vlan_id,omitempty"`
	ClasslessStaticRoutes []route  `json:"classless_static_routes,omitempty"`
	TFTPServerName        string   `json:"tftp_server_name,omitempty"`
	BootFileName          string   `json:"boot_file_name,omitempty"`
}

type ip struct {
	Address string `json:"address,omitempty"`
	Netmask string `json:"netmask,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	Family  int64  `json:"family,omitempty"`
}

type route struct {
	DestinationDescriptor string `json:"destination_descriptor"`
	Router                string `json:"router"`
}

type metadata struct {
	State        string        `json:"state,omitempty"`
	BondingMode  int64         `json:"bonding_mode,omitempty"`
	Manufacturer *manufacturer `json:"manufacturer,omitempty"`
	Instance     *instance     `json:"instance,omitempty"`
	Custom       *custom       `json:"custom,omitempty"`
	Facility     *facility     `json:"facility,omitempty"`
}

type manufacturer struct {
	ID   string `json:"id,omitempty"`
	Slug string `json:"slug,omitempty"`
}

type instance struct {
	ID                  string           `json:"id,omitempty"`
	State               string           `json:"state,omitempty"`
	Hostname            string           `json:"hostname,omitempty"`
	AllowPxe            bool             `json:"allow_pxe,omitempty"`
	Rescue              bool             `json:"rescue,omitempty"`
	OperatingSystem     *operatingSystem `json:"operating_system,omitempty"`
	AlwaysPxe           bool             `json:"always_pxe,omitempty"`
	IpxeScriptURL       string           `json:"ipxe_script_url,omitempty"`
	Ips                 []*instanceIP    `json:"ips,omitempty"`
	Userdata            string           `json:"userdata,omitempty"`
	CryptedRootPassword string           `json:"crypted_root_password,omitempty"`
	Tags                []string         `json:"tags,omitempty"`
	Storage             *storage         `json:"storage,omitempty"`
	SSHKeys             []string         `json:"ssh_keys,omitempty"`
	NetworkReady        bool             `json:"network_ready,omitempty"`
}

type operatingSystem struct {
	Slug     string `json:"slug,omitempty"`
	Distro   string `json:"distro,omitempty"`
	Version  string `json:"version,omitempty"`
	ImageTag string `json:"image_tag,omitempty"`
	OsSlug   string `json:"os_slug,omitempty"`
}

type instanceIP struct {
	Address    string `json:"address,omitempty"`
	Netmask    string `json:"netmask,omitempty"`
	Gateway    string `json:"gateway,omitempty"`
	Family     int64  `json:"family,omitempty"`
	Public     bool   `json:"public,omitempty"`
	Management bool   `json:"management,omitempty"`
}

type storage struct {
	Disks       []*disk       `json:"disks,omitempty"`
	Raid        []*raid       `json:"raid,omitempty"`
	Filesystems []*filesystem `json:"filesystems,omitempty"`
}

type disk struct {
	Device     string       `json:"device,omitempty"`
	WipeTable  bool         `json:"wipe_table,omitempty"`
	Partitions []*partition `json:"partitions,omitempty"`
}

type partition struct {
	Label    string `json:"label,omitempty"`
	Number   int64  `json:"number,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Start    int64  `json:"start,omitempty"`
	TypeGUID string `json:"type_guid,omitempty"`
}

type raid struct {
	Name    string   `json:"name,omitempty"`
	Level   string   `json:"level,omitempty"`
	Devices []string `json:"devices,omitempty"`
	Spare   int64    `json:"spare,omitempty"`
}

type filesystem struct {
	Mount *mount `json:"mount,omitempty"`
}

type mount struct {
	Device string        `json:"device,omitempty"`
	Format string        `json:"format,omitempty"`
	Files  []*file       `json:"files,omitempty"`
	Create *mountOptions `json:"create,omitempty"`
	Point  string        `json:"point,omitempty"`
}

type file struct {
	Path     string `json:"path,omitempty"`
	Contents string `json:"contents,omitempty"`
	Mode     int64  `json:"mode,omitempty"`
	UID      int64  `json:"uid,omitempty"`
	GID      int64  `json:"gid,omitempty"`
}

type mountOptions struct {
	Force   bool     `json:"force,omitempty"`
	Options []string `json:"options,omitempty"`
}

type custom struct {
	PreinstalledOperatingSystemVersion *operatingSystem `json:"preinstalled_operating_system_version,omitempty"`
	PrivateSubnets                     []string         `json:"private_subnets,omitempty"`
}

type facility struct {
	PlanSlug        string `json:"plan_slug,omitempty"`
	PlanVersionSlug string `json:"plan_version_slug,omitempty"`
	FacilityCode    string `json:"facility_code,omitempty"`
}

type workflow struct {
	Version       string         `yaml:"version"`
	Name          string         `yaml:"name"`
	ID            string         `yaml:"id"`
	GlobalTimeout int            `yaml:"global_timeout"`
	Tasks         []workflowTask `yaml:"tasks"`
}

type workflowTask struct {
	Name        string            `yaml:"name"`
	Worker      string            `yaml:"worker"`
	Actions     []workflowAction  `yaml:"actions"`
	Volumes     []string          `yaml:"volumes"`
	Environment map[string]string `yaml:"environment"`
}

type workflowAction struct {
	Name        string            `yaml:"name"`
	Image       string            `yaml:"image"`
	Timeout     int64             `yaml:"timeout"`
	Command     []string          `yaml:"command"`
	OnTimeout   []string          `yaml:"on-timeout"`
	OnFailure   []string          `yaml:"on-failure"`
	Volumes     []string          `yaml:"volumes"`
	Environment map[string]string `yaml:"environment"`
	Pid         string            `yaml:"pid"`
	Namespaces  struct {
		Network string `yaml:"network"`
		PID     string `yaml:"pid"`
	} `yaml:"namespaces"`
}
