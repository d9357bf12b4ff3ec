variable "packages" {
  description = "Folder with the functions' packages, as `make package` fills it."
  type        = string
  default     = "../../../dist/aws"
}

variable "architecture" {
  description = "Processor that the functions run on: `arm64` or `x86_64`."
  type        = string
  default     = "arm64"
}

variable "destroy_with_clusters" {
  description = "Whether `terraform destroy` goes ahead while clusters are registered; apply it before."
  type        = bool
  default     = false
}
