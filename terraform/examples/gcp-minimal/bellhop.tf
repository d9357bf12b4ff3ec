# All that is needed: where the packages are. `terraform output -json` is for `bellhop context add`.
module "bellhop" {
  source = "git::https://git.example.com/bellhop.git//terraform/modules/gcp?ref=v0.1.0"

  packages = "../../../dist/gcp"
}

output "bellhop" {
  description = "The installation, as `bellhop context add NAME --gcp -` reads it."
  value       = module.bellhop.bellhop
}
