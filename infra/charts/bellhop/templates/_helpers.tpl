{{/* One installation for a cluster: two would undo each other's work, so the names are fixed. */}}
{{- define "bellhop.pod" -}}
app.kubernetes.io/name: bellhop
{{- end }}

{{- define "bellhop.labels" -}}
app.kubernetes.io/name: bellhop
app.kubernetes.io/part-of: bellhop
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "bellhop.metadata" -}}
name: bellhop
namespace: {{ .Release.Namespace }}
labels:
  {{- include "bellhop.labels" . | nindent 2 }}
{{- end }}

{{/* A namespace, unless somebody else has made it: Helm installs no object that is there. */}}
{{- define "bellhop.namespace" -}}
{{- $found := lookup "v1" "Namespace" "" .name }}
{{- $annotations := dig "metadata" "annotations" dict ($found | default dict) }}
{{- if or (not $found) (eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name) }}
---
apiVersion: v1
kind: Namespace
metadata:
  name: {{ .name }}
  annotations:
    helm.sh/resource-policy: keep
{{- end }}
{{- end }}

{{/* Rules of the account in one namespace. */}}
{{- define "bellhop.role" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: bellhop
  namespace: {{ .name }}
  labels:
    {{- include "bellhop.labels" .root | nindent 4 }}
rules:
  {{- .root.Files.Get (printf "files/%s-rules.yaml" .name) | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: bellhop
  namespace: {{ .name }}
  labels:
    {{- include "bellhop.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: bellhop
subjects:
  - kind: ServiceAccount
    name: bellhop
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- define "bellhop.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "bellhop.url" -}}
{{- .Values.url | default (printf "https://bellhop.%s.svc:8443" .Release.Namespace) | trimSuffix "/" }}
{{- end }}

{{- define "bellhop.claim" -}}
{{- .Values.persistence.existingClaim | default "bellhop" }}
{{- end }}

{{- define "bellhop.certificate" -}}
{{- .Values.certificate.secretName | default (empty .Values.certificate.issuerRef | ternary "" "bellhop-tls") }}
{{- end }}
