package main

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// ownFunctions are those that Tinkerbell adds to sprig, written from their description.
var ownFunctions = map[string]any{
	"formatPartition": func(device string, number int) string {
		infix := ""
		switch {
		case strings.HasPrefix(device, "/dev/disk/"):
			infix = "-part"
		case device != "" && strings.ContainsRune("0123456789", rune(device[len(device)-1])):
			infix = "p"
		}
		return device + infix + strconv.Itoa(number)
	},
	"netmaskToPrefixLength": func(mask string) (string, error) {
		address := net.ParseIP(mask)
		if address == nil {
			return "", errors.New("invalid netmask format: " + mask)
		}
		if address = address.To4(); address == nil {
			return "", errors.New("netmask must be IPv4: " + mask)
		}
		ones, _ := net.IPMask(address).Size()
		return strconv.Itoa(ones), nil
	},
	"toYaml": func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	},
	"fromYaml": func(text string) (any, error) {
		if text == "" {
			return nil, errors.New("fromYaml: empty YAML input")
		}
		var value any
		err := yaml.Unmarshal([]byte(text), &value)
		return value, err
	},
}
