package e2e_test

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// comparisons returns a test for each kind that the server serves, in each of its
// versions.
func comparisons() map[schema.GroupVersionResource]comparison {
	tests := map[schema.GroupVersionResource]comparison{}
	for group, kinds := range map[schema.GroupVersion]map[string]comparison{
		admissionregistrationv1.SchemeGroupVersion: {
			"mutatingadmissionpolicies":         typed[admissionregistrationv1.MutatingAdmissionPolicy],
			"mutatingadmissionpolicybindings":   typed[admissionregistrationv1.MutatingAdmissionPolicyBinding],
			"mutatingwebhookconfigurations":     typed[admissionregistrationv1.MutatingWebhookConfiguration],
			"validatingadmissionpolicies":       typed[admissionregistrationv1.ValidatingAdmissionPolicy],
			"validatingadmissionpolicybindings": typed[admissionregistrationv1.ValidatingAdmissionPolicyBinding],
			"validatingwebhookconfigurations":   typed[admissionregistrationv1.ValidatingWebhookConfiguration],
		},
		admissionregistrationv1alpha1.SchemeGroupVersion: {
			"mutatingadmissionpolicies":       typed[admissionregistrationv1alpha1.MutatingAdmissionPolicy],
			"mutatingadmissionpolicybindings": typed[admissionregistrationv1alpha1.MutatingAdmissionPolicyBinding],
		},
		admissionregistrationv1beta1.SchemeGroupVersion: {
			"mutatingadmissionpolicies":       typed[admissionregistrationv1beta1.MutatingAdmissionPolicy],
			"mutatingadmissionpolicybindings": typed[admissionregistrationv1beta1.MutatingAdmissionPolicyBinding],
		},
		apiextensionsv1.SchemeGroupVersion: {
			"customresourcedefinitions": typed[apiextensionsv1.CustomResourceDefinition],
		},
		apiregistrationv1.SchemeGroupVersion: {
			"apiservices": typed[apiregistrationv1.APIService],
		},
		apiserverinternalv1alpha1.SchemeGroupVersion: {
			"storageversions": typed[apiserverinternalv1alpha1.StorageVersion],
		},
		appsv1.SchemeGroupVersion: {
			"controllerrevisions": typed[appsv1.ControllerRevision],
			"daemonsets":          typed[appsv1.DaemonSet],
			"deployments":         typed[appsv1.Deployment],
			"replicasets":         typed[appsv1.ReplicaSet],
			"statefulsets":        typed[appsv1.StatefulSet],
		},
		autoscalingv1.SchemeGroupVersion: {
			"horizontalpodautoscalers": typed[autoscalingv1.HorizontalPodAutoscaler],
		},
		autoscalingv2.SchemeGroupVersion: {
			"horizontalpodautoscalers": typed[autoscalingv2.HorizontalPodAutoscaler],
		},
		batchv1.SchemeGroupVersion: {
			"cronjobs": typed[batchv1.CronJob],
			"jobs":     typed[batchv1.Job],
		},
		certificatesv1.SchemeGroupVersion: {
			"certificatesigningrequests": typed[certificatesv1.CertificateSigningRequest],
			"clustertrustbundles":        typed[certificatesv1.ClusterTrustBundle],
			"podcertificaterequests":     typed[certificatesv1.PodCertificateRequest],
		},
		certificatesv1beta1.SchemeGroupVersion: {
			"clustertrustbundles":    typed[certificatesv1beta1.ClusterTrustBundle],
			"podcertificaterequests": typed[certificatesv1beta1.PodCertificateRequest],
		},
		coordinationv1.SchemeGroupVersion: {
			"leases": typed[coordinationv1.Lease],
		},
		coordinationv1alpha2.SchemeGroupVersion: {
			"leasecandidates": typed[coordinationv1alpha2.LeaseCandidate],
		},
		coordinationv1beta1.SchemeGroupVersion: {
			"leasecandidates": typed[coordinationv1beta1.LeaseCandidate],
		},
		corev1.SchemeGroupVersion: {
			"configmaps": typed[corev1.ConfigMap],
			//lint:ignore SA1019 it is deprecated, and served
			"endpoints":              typed[corev1.Endpoints],
			"events":                 typed[corev1.Event],
			"limitranges":            typed[corev1.LimitRange],
			"namespaces":             typed[corev1.Namespace],
			"nodes":                  typed[corev1.Node],
			"persistentvolumeclaims": typed[corev1.PersistentVolumeClaim],
			"persistentvolumes":      typed[corev1.PersistentVolume],
			"pods":                   typed[corev1.Pod],
			"podtemplates":           typed[corev1.PodTemplate],
			"replicationcontrollers": typed[corev1.ReplicationController],
			"resourcequotas":         typed[corev1.ResourceQuota],
			"secrets":                typed[corev1.Secret],
			"serviceaccounts":        typed[corev1.ServiceAccount],
			"services":               typed[corev1.Service],
		},
		discoveryv1.SchemeGroupVersion: {
			"endpointslices": typed[discoveryv1.EndpointSlice],
		},
		eventsv1.SchemeGroupVersion: {
			"events": typed[eventsv1.Event],
		},
		flowcontrolv1.SchemeGroupVersion: {
			"flowschemas":                 typed[flowcontrolv1.FlowSchema],
			"prioritylevelconfigurations": typed[flowcontrolv1.PriorityLevelConfiguration],
		},
		networkingv1.SchemeGroupVersion: {
			"ingressclasses":  typed[networkingv1.IngressClass],
			"ingresses":       typed[networkingv1.Ingress],
			"ipaddresses":     typed[networkingv1.IPAddress],
			"networkpolicies": typed[networkingv1.NetworkPolicy],
			"servicecidrs":    typed[networkingv1.ServiceCIDR],
		},
		nodev1.SchemeGroupVersion: {
			"runtimeclasses": typed[nodev1.RuntimeClass],
		},
		policyv1.SchemeGroupVersion: {
			"poddisruptionbudgets": typed[policyv1.PodDisruptionBudget],
		},
		rbacv1.SchemeGroupVersion: {
			"clusterrolebindings": typed[rbacv1.ClusterRoleBinding],
			"clusterroles":        typed[rbacv1.ClusterRole],
			"rolebindings":        typed[rbacv1.RoleBinding],
			"roles":               typed[rbacv1.Role],
		},
		resourcev1.SchemeGroupVersion: {
			"deviceclasses":          typed[resourcev1.DeviceClass],
			"devicetaintrules":       typed[resourcev1.DeviceTaintRule],
			"resourceclaims":         typed[resourcev1.ResourceClaim],
			"resourceclaimtemplates": typed[resourcev1.ResourceClaimTemplate],
			"resourceslices":         typed[resourcev1.ResourceSlice],
		},
		resourcev1alpha3.SchemeGroupVersion: {
			"devicetaintrules":           typed[resourcev1alpha3.DeviceTaintRule],
			"resourcepoolstatusrequests": typed[resourcev1alpha3.ResourcePoolStatusRequest],
		},
		resourcev1beta1.SchemeGroupVersion: {
			"deviceclasses":          typed[resourcev1beta1.DeviceClass],
			"resourceclaims":         typed[resourcev1beta1.ResourceClaim],
			"resourceclaimtemplates": typed[resourcev1beta1.ResourceClaimTemplate],
			"resourceslices":         typed[resourcev1beta1.ResourceSlice],
		},
		resourcev1beta2.SchemeGroupVersion: {
			"deviceclasses":          typed[resourcev1beta2.DeviceClass],
			"devicetaintrules":       typed[resourcev1beta2.DeviceTaintRule],
			"resourceclaims":         typed[resourcev1beta2.ResourceClaim],
			"resourceclaimtemplates": typed[resourcev1beta2.ResourceClaimTemplate],
			"resourceslices":         typed[resourcev1beta2.ResourceSlice],
		},
		schedulingv1.SchemeGroupVersion: {
			"priorityclasses": typed[schedulingv1.PriorityClass],
		},
		storagemigrationv1.SchemeGroupVersion: {
			"storageversionmigrations": typed[storagemigrationv1.StorageVersionMigration],
		},
		storagemigrationv1beta1.SchemeGroupVersion: {
			"storageversionmigrations": typed[storagemigrationv1beta1.StorageVersionMigration],
		},
		storagev1.SchemeGroupVersion: {
			"csidrivers":              typed[storagev1.CSIDriver],
			"csinodes":                typed[storagev1.CSINode],
			"csistoragecapacities":    typed[storagev1.CSIStorageCapacity],
			"storageclasses":          typed[storagev1.StorageClass],
			"volumeattachments":       typed[storagev1.VolumeAttachment],
			"volumeattributesclasses": typed[storagev1.VolumeAttributesClass],
		},
	} {
		for name, test := range kinds {
			tests[group.WithResource(name)] = test
		}
	}
	return tests
}
