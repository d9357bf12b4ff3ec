variable "name" {
  description = "Name of the installation, which no other has in this region of the account; all that is made begins with it."
  type        = string
  default     = "bellhop"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,22}[a-z0-9]$", var.name))
    error_message = "The name has 2 to 24 lower-case letters, digits and hyphens, begins with a letter and ends with none of the hyphens."
  }
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}

variable "packages" {
  description = "Folder with the functions' packages, as `make package` fills it; or null, and `package_bucket` has them. A plan and a destroy need none of its files."
  type        = string
  default     = null

  validation {
    condition     = (var.packages == null) != (var.package_bucket == null)
    error_message = "The packages are in a folder (packages) or in a bucket (package_bucket): set one of the two."
  }
}

variable "package_bucket" {
  description = "S3 bucket, in the installation's region, with the packages under the names that `make package` gives them."
  type        = string
  default     = null
}

variable "package_sums" {
  description = "Content of the packages' `SHA256SUMS`, as `file(\"SHA256SUMS\")` reads it, with which each object of `package_bucket` is compared before it is used."
  type        = string
  default     = null

  validation {
    condition     = (var.package_bucket == null) == (var.package_sums == null)
    error_message = "The packages of a bucket (package_bucket) need their sums (package_sums), and others have theirs beside them: set both or none."
  }
}

variable "package_prefix" {
  description = "Prefix of the packages' keys in `package_bucket`, such as `bellhop/`."
  type        = string
  default     = ""
}

variable "architecture" {
  description = "Processor that the functions run on: `arm64`, which costs a fifth less, or `x86_64`."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "The architecture is arm64 or x86_64."
  }
}

variable "cel" {
  description = "Whether sources and checks may have rules in CEL (`evaluateCEL`): its runtime, 6 MB, is then a layer of deploy and evaluate, and of charts if there is one."
  type        = bool
  default     = false
}

variable "charts" {
  description = "Whether profiles may deploy Helm charts and kustomizations: a function `charts` with Helm and kubectl in a layer, on x86_64 whatever `architecture` says, and its queue."
  type        = bool
  default     = false
}

variable "settings" {
  description = "Bellhop's settings by their names in lower case, such as `{ sweep_interval = 600 }`."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(setsubtract(keys(var.settings), local.known_settings)) == 0
    error_message = "There is no such setting: ${join(", ", setsubtract(keys(var.settings), local.known_settings))}."
  }

  validation {
    condition = alltrue([
      for name, value in var.settings : contains(["adopt", "egress_allow", "forwarder_image", "mirrors", "report_inbox"], name) || can(tonumber(value))
    ])
    error_message = "Every setting but adopt, egress_allow, forwarder_image, mirrors and report_inbox is a number."
  }

  validation {
    condition = alltrue([
      for each in split(",", lookup(var.settings, "egress_allow", "public")) :
      can(cidrhost(trimspace(each), 0)) || can(regex("^(\\*\\.)?[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$", trimspace(each)))
    ])
    error_message = "The setting egress_allow has hosts, such as charts.example.com or *.example.com, ranges of addresses, such as 203.0.113.0/24, or public, with commas between."
  }

  # A function that reads a value which it cannot use fails at every start.
  validation {
    condition = alltrue([
      for name, value in var.settings : try(tonumber(value) > 0 || (tonumber(value) == 0 && contains(local.may_be_zero, name)), true)
    ])
    error_message = "Every setting but adopt, egress_allow, forwarder_image, mirrors and report_inbox is above zero; only ${join(", ", local.may_be_zero)} may be zero."
  }

  # Pub/Sub counts to 100, and each attempt twice: both modules have one bound.
  validation {
    condition     = contains(range(1, 51), try(tonumber(lookup(var.settings, "attempts", "12")), 12))
    error_message = "A message is tried 1 to 50 times (attempts): 50 take three quarters of an hour, and more only delay the dead letter that says why."
  }

  validation {
    condition     = contains(["asked", "always"], lookup(var.settings, "adopt", "asked"))
    error_message = "The setting adopt is asked or always."
  }
}

variable "functions" {
  description = "By stage (`ingest`, `evaluate`, `deploy`, `sweep`, `schedule`, and `charts` if there is one): memory in MB, time-out in seconds, and how many may run at once, -1 for any number."
  type = map(object({
    memory      = optional(number)
    timeout     = optional(number)
    concurrency = optional(number)
  }))
  default = {}

  validation {
    condition     = length(setsubtract(keys(var.functions), keys(local.stages))) == 0
    error_message = "There is no such stage: ${join(", ", setsubtract(keys(var.functions), keys(local.stages)))}."
  }

  validation {
    condition     = alltrue([for each in var.functions : coalesce(each.timeout, 1) >= 1 && coalesce(each.timeout, 1) <= 900])
    error_message = "A function's time-out has 1 to 900 seconds."
  }

  validation {
    condition = alltrue([
      for stage, each in var.functions :
      coalesce(each.concurrency, -1) < 1 || coalesce(each.concurrency, -1) >= 2 * length([for by in values(local.queues) : by if by == stage])
    ])
    error_message = "A function has two instances at least for each queue that feeds it, or -1 for any number."
  }
}

variable "concurrency" {
  description = "Lambda's quota of concurrent executions in this account and region, as far as Bellhop may use it: new accounts have 10. From 100 on, events do not share their queues with work that takes long."
  type        = number
  default     = 10

  validation {
    condition     = var.concurrency >= 10 && floor(var.concurrency) == var.concurrency
    error_message = "The concurrency is a whole number, and 10 at least."
  }

  validation {
    condition     = !(var.charts && length(var.event_rules) > 0) || var.concurrency >= 12
    error_message = "With charts and event_rules the concurrency is 12 at least, or nothing is left to ingest: ask AWS for a higher quota."
  }
}

variable "snap_start" {
  description = "Stages whose functions begin from a snapshot (Lambda SnapStart), which AWS bills by the hour for each published version."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.snap_start, keys(local.stages))) == 0
    error_message = "There is no such stage: ${join(", ", setsubtract(var.snap_start, keys(local.stages)))}."
  }
}

variable "network" {
  description = "Subnets and security groups for the functions that call API servers, where those are private; null for none. The subnets need a way to AWS' services: see below."
  type = object({
    subnet_ids         = set(string)
    security_group_ids = set(string)
  })
  default = null
}

variable "eks_clusters" {
  description = "ARNs of the EKS clusters that may be registered without a kubeconfig; `*` may stand in them."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.eks_clusters : can(regex("^arn:[a-z-]+:eks:[^:]+:[^:]+:cluster/.+$", each))])
    error_message = "Each is the ARN of an EKS cluster, arn:aws:eks:REGION:ACCOUNT:cluster/NAME."
  }
}

variable "eks_roles" {
  description = "ARNs of roles of other accounts that may be assumed to reach the EKS clusters there (`--assume-role`); `*` may stand in them."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.eks_roles : can(regex("^arn:[a-z-]+:iam::(\\d{12}|\\*):role/.*[^*/].*$", each))])
    error_message = "Each is the ARN of a role, arn:aws:iam::ACCOUNT:role/NAME, and not of all roles."
  }
}

variable "role_path" {
  description = "Path of the roles in IAM, such as `/bellhop/`."
  type        = string
  default     = "/"

  validation {
    condition     = can(regex("^/([!-~]{1,510}/)?$", var.role_path))
    error_message = "A path begins and ends with a slash."
  }
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds what the roles may do at most; null for none."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary == null || can(regex("^arn:[a-z-]+:iam::(\\d{12}|aws):policy/.+$", var.permissions_boundary))
    error_message = "It is the ARN of a policy, arn:aws:iam::ACCOUNT:policy/NAME."
  }
}

variable "operators" {
  description = "ARNs of the roles and users of people who use the CLI, whether they change things or look; `*` may stand in them. The policy of the KMS key names them, and the output `policies` has what else they need."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.operators : can(regex("^arn:[a-z-]+:iam::\\d{12}:(role|user)/.+$", each))])
    error_message = "Each is the ARN of a role or a user, arn:aws:iam::ACCOUNT:role/NAME."
  }
}

variable "kms_key_arn" {
  description = "ARN of a KMS key of yours that seals table, bucket, secrets and logs, known before the plan; null for a key that the module makes. The module's README says what the policy of yours has to allow."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:[^:]+:\\d{12}:key/.+$", var.kms_key_arn))
    error_message = "It is the ARN of a key, arn:aws:kms:REGION:ACCOUNT:key/ID."
  }
}

variable "kubeconfig_store" {
  description = "Where kubeconfigs of clusters are kept: `secrets-manager`, for $0.40 a month each, or `parameter-store`, which is free up to 4 KB, and takes 8 KB at most for $0.05 a month. Move them before you change it: see the module's README."
  type        = string
  default     = "secrets-manager"

  validation {
    condition     = contains(["secrets-manager", "parameter-store"], var.kubeconfig_store)
    error_message = "It is secrets-manager or parameter-store."
  }
}

variable "configuration_cluster" {
  description = "Whether the function sweep may store and delete kubeconfigs, which SveltosClusters of the cluster that holds the configuration need. Without it only people register clusters that have a kubeconfig."
  type        = bool
  default     = false
  nullable    = false
}

variable "domain_name" {
  description = "Name by which clusters reach ingest, such as `bellhop.example.com`; null for the API's own. Its DNS record is yours: see the output `domain_target`."
  type        = string
  default     = null
}

variable "certificate_arn" {
  description = "ARN of the certificate of `domain_name`, in ACM and in the installation's region."
  type        = string
  default     = null

  validation {
    condition     = (var.certificate_arn == null) == (var.domain_name == null)
    error_message = "A domain needs its certificate, and a certificate its domain."
  }
}

variable "ingest_from" {
  description = "Where ingest accepts calls from: `anywhere`, `domain` (only `domain_name`: the API has no address of its own that leads past it), or `network` (only `ingest_endpoints` of your networks)."
  type        = string
  default     = "anywhere"

  validation {
    condition     = contains(["anywhere", "domain", "network"], var.ingest_from)
    error_message = "Ingest is called from anywhere, domain or network."
  }

  validation {
    condition     = var.ingest_from != "domain" || var.domain_name != null
    error_message = "With ingest_from = \"domain\" ingest needs a domain_name, or nothing can reach it."
  }

  validation {
    condition     = var.ingest_from != "network" || var.domain_name == null
    error_message = "With ingest_from = \"network\" clusters use the address of a VPC endpoint: leave domain_name null."
  }
}

variable "ingest_endpoints" {
  description = "IDs of the VPC endpoints for `execute-api` through which clusters reach ingest, with `ingest_from = \"network\"`: see below."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.ingest_endpoints : can(regex("^vpce-[0-9a-f]+$", each))])
    error_message = "Each is the ID of a VPC endpoint, such as vpce-0123456789abcdef0."
  }

  validation {
    condition     = (length(var.ingest_endpoints) > 0) == (var.ingest_from == "network")
    error_message = "VPC endpoints and ingest_from = \"network\" belong together: set both or neither."
  }
}

variable "ingest_truststore" {
  description = "File of CA certificates in PEM (`uri`, such as `s3://BUCKET/ca.pem`) and its version in the bucket: who calls `domain_name` needs a certificate of one of them (mutual TLS). Only with `ingest_from = \"domain\"`; null for none."
  type = object({
    uri     = string
    version = optional(string)
  })
  default = null

  validation {
    condition     = var.ingest_truststore == null || can(regex("^s3://[^/]+/.+$", var.ingest_truststore.uri))
    error_message = "The truststore's uri is s3://BUCKET/KEY."
  }

  validation {
    condition     = var.ingest_truststore == null || var.ingest_from == "domain"
    error_message = "Mutual TLS needs ingest_from = \"domain\": the API's own address asks nobody for a certificate."
  }
}

variable "ingest_allow" {
  description = "Address ranges, in CIDR notation, from which clusters may send events; empty for any."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.ingest_allow : can(cidrhost(each, 0))])
    error_message = "Each is a range of addresses in CIDR notation, such as 203.0.113.0/24."
  }

  validation {
    condition     = length(join(",", var.ingest_allow)) <= 1500
    error_message = "The ranges have 1,500 characters at most together, which is about 80: Lambda takes 4 KB of a function's settings. Join ranges that are neighbours, or put a firewall before ingest."
  }
}

variable "ingest_rate" {
  description = "Requests a second that ingest takes, all clusters together; clients that send more must wait. Null for 500, or for less where `concurrency` leaves ingest fewer executions than 500 refused requests take."
  type        = number
  default     = null

  validation {
    condition     = coalesce(var.ingest_rate, 1) >= 1
    error_message = "Ingest takes at least one request a second."
  }

  validation {
    condition     = coalesce(var.ingest_rate, 1) <= local.highest_rate
    error_message = "Ingest takes at most ${local.highest_rate} requests a second here, or requests without a valid token take executions from the other functions. Raise `concurrency`, as AWS raises the account's quota."
  }
}

variable "event_rules" {
  description = "By a name of your choice: which events of EventBridge, by a `pattern` in JSON on a `bus`, count as CloudEvents of which registered `cluster`; their `subject` is what a dotted path such as `detail.object.key` leads to, or else their first resource."
  type = map(object({
    cluster = string
    pattern = string
    bus     = optional(string, "default")
    subject = optional(string, "")
  }))
  default = {}

  validation {
    condition     = alltrue([for each in var.event_rules : can(regex("^[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", each.cluster))])
    error_message = "A cluster is named as it was registered, NAMESPACE/NAME."
  }

  validation {
    condition     = alltrue([for each in var.event_rules : can(keys(jsondecode(each.pattern)))])
    error_message = "A pattern is a JSON object: jsonencode({ source = [\"aws.s3\"] })."
  }

  validation {
    condition     = alltrue([for name, each in var.event_rules : can(regex("^[a-z0-9][a-z0-9-]{0,30}$", name)) && can(regex("^[A-Za-z0-9_.-]*$", each.subject))])
    error_message = "A rule's name has up to 31 lower-case letters, digits and hyphens, and its subject is a path such as detail.object.key."
  }
}

variable "log_retention_days" {
  description = "How long log lines are kept, in days."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "CloudWatch keeps lines for 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288 or 3653 days."
  }
}

variable "access_log" {
  description = "Whether the API that clusters send to logs each request: address, status and time, no path, query or header. A private API logs none."
  type        = bool
  default     = true
}

variable "tracing" {
  description = "Whether X-Ray traces the functions."
  type        = bool
  default     = false
}

variable "recovery_days" {
  description = "For how long the sealing key and the KMS key can be had back after a destroy, in days."
  type        = number
  default     = 30

  validation {
    condition     = var.recovery_days >= 7 && var.recovery_days <= 30
    error_message = "Keys can be had back for 7 to 30 days."
  }
}

variable "table" {
  description = "Name of the table of the records, where it was restored from point-in-time recovery and imported; null for `name`. The page about backups has the steps."
  type        = string
  default     = null

  validation {
    condition     = var.table == null || can(regex("^[A-Za-z0-9_.-]{3,255}$", var.table))
    error_message = "The table's name has 3 to 255 letters, digits, underscores, dots and hyphens."
  }
}

variable "deletion_protection" {
  description = "Whether DynamoDB refuses to delete the table."
  type        = bool
  default     = false
}

variable "destroy_with_clusters" {
  description = "Whether `terraform destroy` goes ahead while clusters are registered; apply it before."
  type        = bool
  default     = false
}

variable "alarms" {
  description = "Whether to watch for dead letters, old messages, errors, throttles, missed events, lost clusters, credentials that expire, failing steps, held deletions, stalled promotions, refused requests, slow events and a schedule that does not tick."
  type        = bool
  default     = true
}

variable "notifications" {
  description = "Targets of alarms, and of their end: ARNs of SNS topics."
  type        = set(string)
  default     = []
}

variable "monthly_budget" {
  description = "How many USD a month the resources with the tag `bellhop = NAME` may cost before the first of the `notifications` hears of it, and of a forecast; none by default. Activate `bellhop` as a cost allocation tag, and let `budgets.amazonaws.com` publish to the topic."
  type        = number
  default     = null

  validation {
    condition     = var.monthly_budget == null ? true : var.monthly_budget > 0
    error_message = "A budget is above zero."
  }
}

variable "oldest_message_minutes" {
  description = "How old the oldest message, and the oldest pending work, may be before an alarm, in minutes."
  type        = number
  default     = 30

  validation {
    condition     = var.oldest_message_minutes >= 5
    error_message = "A message may take at least five minutes, since CloudWatch counts each five."
  }
}

variable "dashboard" {
  description = "Whether to make a dashboard, and to save queries of the logs."
  type        = bool
  default     = true
}
