// Command check reads manifests of Kubernetes with the types of its API. It fails if one has an unknown field, a
// field with the wrong type, or a kind that is not expected. The arguments are files.
//
// It is a module of its own, so that these types are not among the dependencies of the program.
package main

import (
	"fmt"
	"os"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	bad := false
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			bad = true
		}
	}
	if bad || len(os.Args) == 1 {
		os.Exit(1)
	}
	fmt.Printf("%d manifests have only fields that Kubernetes knows\n", len(os.Args)-1)
}

// check decodes a file that has one object.
func check(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return err
	}
	known := map[string]any{
		"v1 Namespace":                           &core.Namespace{},
		"v1 ConfigMap":                           &core.ConfigMap{},
		"v1 Secret":                              &core.Secret{},
		"v1 Service":                             &core.Service{},
		"v1 PersistentVolumeClaim":               &core.PersistentVolumeClaim{},
		"apps/v1 Deployment":                     &apps.Deployment{},
		"autoscaling/v2 HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{},
		"policy/v1 PodDisruptionBudget":          &policy.PodDisruptionBudget{},
		"networking.k8s.io/v1 Ingress":           &networking.Ingress{},
		"networking.k8s.io/v1 NetworkPolicy":     &networking.NetworkPolicy{},
	}
	object, ok := known[head.APIVersion+" "+head.Kind]
	if !ok {
		return fmt.Errorf("kind %s of %s is not one of those that this program checks", head.Kind, head.APIVersion)
	}
	return yaml.UnmarshalStrict(text, object)
}
