package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// resolve asks the cluster which resource is meant by a name such as "pods",
// "deployments.apps" or "deployments.v1.apps".
func resolve(config *rest.Config, name string) (schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	full, short := schema.ParseResourceArg(name)
	if full != nil {
		if gvr, err := mapper.ResourceFor(*full); err == nil {
			return gvr, nil
		}
	}
	return mapper.ResourceFor(short.WithVersion(""))
}

// phaseOf returns the phase of an object, for kinds that have one.
func phaseOf(obj *unstructured.Unstructured) string {
	phase, found, err := unstructured.NestedString(obj.Object, "status", "phase")
	if err != nil || !found {
		return fmt.Sprintf("generation: %d", obj.GetGeneration())
	}
	return "status.phase: " + phase
}

// labelsOf returns the labels of an object, which are metadata.
func labelsOf(obj *metav1.PartialObjectMetadata) string {
	return "labels: " + labels.FormatLabels(obj.GetLabels())
}
