package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apix "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const plural = "rockets"

var ctrlResource = schema.GroupResource{Group: newVersion.Group, Resource: plural}

// certificate makes what the webhook server serves with, and gives what its callers trust.
func certificate(folder string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhooks"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	if err := os.WriteFile(filepath.Join(folder, "tls.crt"), public, 0o600); err != nil {
		return nil, err
	}
	return public, os.WriteFile(filepath.Join(folder, "tls.key"), private, 0o600)
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func definition(server string, authority []byte) *apix.CustomResourceDefinition {
	object := func(properties map[string]apix.JSONSchemaProps) apix.JSONSchemaProps {
		return apix.JSONSchemaProps{Type: "object", Properties: properties}
	}
	preserve := true
	version := func(name, fuel string, storage bool) apix.CustomResourceDefinitionVersion {
		spec := object(map[string]apix.JSONSchemaProps{fuel: {Type: "string"}, "stages": {Type: "integer", Format: "int32"}})
		status := apix.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
		root := object(map[string]apix.JSONSchemaProps{"spec": spec, "status": status})
		return apix.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage, Schema: &apix.CustomResourceValidation{OpenAPIV3Schema: &root},
			Subresources: &apix.CustomResourceSubresources{Status: &apix.CustomResourceSubresourceStatus{}},
		}
	}
	url := server + "/convert"
	return &apix.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + newVersion.Group},
		Spec: apix.CustomResourceDefinitionSpec{
			Group: newVersion.Group, Scope: apix.NamespaceScoped,
			Names: apix.CustomResourceDefinitionNames{Kind: "Rocket", ListKind: "RocketList", Plural: plural, Singular: "rocket"},
			Versions: []apix.CustomResourceDefinitionVersion{
				version(oldVersion.Version, "propellant", false), version(newVersion.Version, "fuel", true),
			},
			Conversion: &apix.CustomResourceConversion{
				Strategy: apix.WebhookConverter,
				Webhook: &apix.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig:             &apix.WebhookClientConfig{URL: &url, CABundle: authority},
				},
			},
		},
	}
}

func webhooks(server string, authority []byte) []client.Object {
	name, equivalent, none := "rockets.test.ironbell.dev", admissionv1.Equivalent, admissionv1.SideEffectClassNone
	at := func(kind string) admissionv1.WebhookClientConfig {
		url := fmt.Sprintf("%s/%s-runtime-test-ironbell-dev-v1beta1-rocket", server, kind)
		return admissionv1.WebhookClientConfig{URL: &url, CABundle: authority}
	}
	rule := func(operations ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{{Operations: operations, Rule: admissionv1.Rule{
			APIGroups: []string{newVersion.Group}, APIVersions: []string{newVersion.Version}, Resources: []string{plural},
		}}}
	}
	return []client.Object{
		&admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: "default." + name, ClientConfig: at("mutate"), Rules: rule(admissionv1.Create, admissionv1.Update),
				AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, MatchPolicy: &equivalent,
			}},
		},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "validate." + name, ClientConfig: at("validate"), MatchPolicy: &equivalent,
				Rules:                   rule(admissionv1.Create, admissionv1.Update, admissionv1.Delete),
				AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			}},
		},
	}
}
